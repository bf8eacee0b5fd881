-- A debug hook that raises can strike anywhere, also between two steps of the pump itself. A Ctrl-C is such a hook.
-- Whatever it strikes, the queue is whole afterwards: no job is lost or stays in flight, and the next run goes on.
local H = require("spec.helper")
local queue, eq = H.queue, H.eq
local sethook = debug.sethook ---@type fun(hook?: function, mask?: string, count?: integer)

--- Calls `fn` with a hook that raises at the n-th instruction. Returns whether it struck.
local function strike(n, text, fn)
  local struck = false
  -- Two of them, as it may strike the way out of the inner one.
  local _, ok, err = pcall(pcall, function()
    sethook(function()
      sethook()
      struck = true
      error(text, 0)
    end, "", n)
    fn()
    sethook()
  end)
  sethook()
  if ok == false and err ~= text then error(err, 0) end
  return struck
end

local function interpreted(title, fn)
  it(title, function() H.interpreted(fn) end)
end

describe("a hook that strikes", function()
  for concurrency = 1, 3 do
    for _, text in ipairs{ "interrupted!", "out of time" } do
      interpreted(("anywhere in a run at concurrency %d with '%s' leaves the queue whole"):format(concurrency, text), function()
        local n, struck = 0, true
        while struck and n < 900 do
          n = n + 1
          local q, ran = queue.new{ concurrency = concurrency }, 0
          local function job() ran = ran + 1; queue.sleep(0) end
          for _ = 1, 3 do q:push(job) end
          -- Stock 5.1 has no protected call to catch it in, where a job that waits yields through the pump.
          if concurrency > 1 or not H.lua51 then
            q:push(function() error("no") end)
            q:push(function() error("not yet") end, { retries = 1 })
          end
          struck = strike(n, text, function() return q:run() end)
          -- What holds a job then may be garbage; to collect after every strike would take minutes.
          if q:in_flight() > 0 then H.collect() end
          q:run()
          local m = q:metrics()
          eq(m.pending, 0, "pending, struck at " .. n)
          if concurrency > 1 or not H.lua51 then eq(m.in_flight, 0, "in flight, struck at " .. n) end
          H.conserved(q)
          q:push(job)
          eq(q:run(), 1, "a later run, struck at " .. n)
        end
        assert(n > 50, "it struck nowhere")
      end)
    end
  end
end)
