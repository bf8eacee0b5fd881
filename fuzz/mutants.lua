--- Ways to break the module: a fuzzer that cannot fail is a defect, and each of these it must find. `breaks` does it,
-- and `found` is a pattern of what the fuzzer then has to say.

local function methods(object) return debug.getmetatable(object).__index end

--- Every nth call is another one.
local function every(n, other, usual)
  local calls = 0
  return function(...)
    calls = calls + 1
    if calls % n == 0 then return other(...) end
    return usual(...)
  end
end

return {
  {
    name = "clears nothing", found = "ran though it was cleared",
    breaks = function(queue)
      local q = methods(queue.new())
      q.clear = function(self) return self:size() end
    end,
  },
  {
    name = "miscounts", found = "accounted for",
    breaks = function(queue)
      local q = methods(queue.new())
      local metrics = q.metrics
      q.metrics = function(self)
        local m = metrics(self)
        m.enqueued = m.enqueued + (m.failed > 2 and 1 or 0)
        return m
      end
    end,
  },
  {
    name = "loses a value", found = "sent and are nowhere",
    breaks = function(queue)
      local ch = methods(queue.channel())
      local try_receive = ch.try_receive
      ch.try_receive = every(9, function(self)
        try_receive(self)
        return try_receive(self)
      end, try_receive)
    end,
  },
  {
    name = "doubles a value", found = "gave value %d+ .*twice",
    breaks = function(queue)
      local ch = methods(queue.channel())
      local try_receive, last = ch.try_receive, nil
      ch.try_receive = function(self)
        local v, ok, why = try_receive(self)
        if ok then last = v elseif last ~= nil and why == "empty" then return last, true end
        return v, ok, why
      end
    end,
  },
  {
    name = "forgets who waits", found = "sent and are nowhere",
    breaks = function(queue)
      local ch = methods(queue.channel())
      ch.try_send = every(7, function() return true end, ch.try_send)
    end,
  },
  {
    name = "sleeps too short", found = "a sleep of .* took",
    breaks = function(queue) queue.sleep = function() end end,
  },
  {
    name = "turns priorities round", found = "started before",
    breaks = function(queue)
      local q = methods(queue.new())
      local push = q.push
      q.push = function(self, fn, opts)
        if type(opts) == "table" and type(opts.priority) == "number" then opts.priority = -1 - opts.priority end
        return push(self, fn, opts)
      end
    end,
  },
  {
    name = "tries once more", found = "ran 2 times",
    breaks = function(queue)
      local q = methods(queue.new())
      local push = q.push
      q.push = function(self, fn, opts)
        if type(opts) == "table" and opts.retries == nil then opts.retries = 1 end
        return push(self, fn, opts)
      end
    end,
  },
  {
    name = "starts too early", found = "too early",
    breaks = function(queue)
      local q = methods(queue.new())
      local push = q.push
      q.push = function(self, fn, opts)
        if type(opts) == "table" and opts.delay_ms == 0.4 then opts.delay_ms = 0 end
        return push(self, fn, opts)
      end
    end,
  },
  {
    name = "raises a table", found = "raised no string but a table",
    breaks = function(queue)
      local q = methods(queue.new())
      q.stop = every(5, function() error({}) end, q.stop)
    end,
  },
  {
    name = "takes what is bad", found = "a bad call of poll passed",
    breaks = function(queue)
      local q = methods(queue.new())
      local poll = q.poll
      q.poll = function(self, max)
        local n = poll(self, type(max) == "number" and max >= 0 and max or nil)
        return n
      end
    end,
  },
  {
    name = "panics", found = "panicked",
    breaks = function(queue)
      local q = methods(queue.new())
      q.clear = every(20, function() error("thread 'main' panicked at src/lib.rs:1:1") end, q.clear)
    end,
  },
  {
    name = "crashes", found = "a crash: signal 11",
    breaks = function(queue)
      local q = methods(queue.new())
      q.clear = every(50, function() os.execute("kill -SEGV $PPID") end, q.clear)
    end,
  },
  {
    name = "hangs", found = "a hang",
    breaks = function(queue)
      local q = methods(queue.new())
      q.clear = every(50, function() while true do queue.now() end end, q.clear)
    end,
  },
}
