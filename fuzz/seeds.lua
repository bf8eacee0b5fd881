--- Programs that once found something, each with what it was. `make test` runs them on every Lua. They stand here as
-- what is left of them after `--shrink`, so that the grammar may change; `--seed -1` runs the first again.
return {
  {
    found = "a value that was handed to a job, which was collected before it took it, is in the channel again",
    source = [[
local w, queue = ...
local q1 = w.new("q1", { concurrency = 2 })
local c2 = w.channel("c2", 0)
w.push(q1, function(job)
  w.receive(c2, nil)
end)
w.poll(q1)
w.try_send(c2, "string")
q1 = nil
w.collect("twice")
w.look(c2)
w.finish()
]],
  },
  {
    found = "run waits for ever for a job whose backoff_ms has yielded outward, once the coroutine it is in is collected",
    source = [[
local w, queue = ...
local q1 = w.new("q1", { concurrency = 2 })
w.push(q1, function(job)
  w.raise("text")
end, { retries = 1, backoff_ms = function(attempts, thrown)
  w.yield("outward")
  return 0
end })
w.host(1, function()
  w.run(q1)
end)
w.collect("twice")
w.run(q1)
w.finish()
]],
  },
  {
    found = "on LuaJIT and 5.2 a hook that waits, where a job is about to, makes the job wait for ever",
    source = [[
local w, queue = ...
local q1 = w.new("q1", { concurrency = 2 })
local c2 = w.channel("c2", 0)
for n = 1, 25 do
  w.push(q1, function(job)
    debug.sethook(function()
      debug.sethook()
      c2:receive(0.01)
    end, "", n)
    queue.sleep(0.2)
    debug.sethook()
  end)
  w.run(q1)
end
w.finish()
]],
  },
}
