--- Ctrl-C: the signal itself, sent to a script that waits.
local H = require("spec.helper")

local function interrupted(...) H.interrupted("interrupted.lua", ...) end

local waits = {
  "receive", "receive with a time", "send", "send with a time", "send to a full channel", "sleep", "iter", "tick",
  "run of a delayed job", "run of a job far away",
}

describe("Ctrl-C at top level ends", function()
  for _, wait in ipairs(waits) do
    it(wait, function() interrupted(1, "ready\n", "interrupted!", wait, "top") end)
  end

  it("a wait inside a job: it has failed, is not retried, and no further job runs", function()
    interrupted(1, "ready\nfailed job 1\n", "interrupted!", "job", "top")
  end)

  it("a wait inside a job inside a job", function()
    interrupted(1, "ready\nfailed inner 1\nfailed job 1\n", "interrupted!", "job in a job", "top")
  end)

  it("a wait inside on_error and backoff_ms", function()
    interrupted(1, "ready\n", "interrupted!", "on_error", "top")
    interrupted(1, "ready\n", "interrupted!", "backoff_ms", "top")
  end)

  it("a Lua loop without end in a job", function()
    if H.jit then return pending("compiled loops never look") end
    interrupted(1, "ready\nfailed job 1\n", "interrupted!", "loop", "top")
  end)

  it("no wait that is over: a script that catches it goes on", function()
    interrupted(3, "ready\ncaught true, slept on, ran 1\n", nil, "receive", "caught")
  end)

  it("a run that was waiting, with no job lost: a later run goes on", function()
    interrupted(3, "ready\ncaught true, pending 2, failed 0, then ran 2\n", nil, "run", "goes on")
  end)
end)

describe("Ctrl-C in a coroutine ends", function()
  local function here(name, ...)
    local words = H.pack(...)
    it(name, function()
      if H.lua51 then return pending("stock 5.1 has no way to tell a coroutine") end
      interrupted(H.unpack(words, 1, words.n))
    end)
  end
  for _, wait in ipairs(waits) do here(wait, 1, "ready\n", "interrupted!", wait, "coroutine") end
  here("a wait inside a job: it has failed, is not retried, and no further job runs", 1, "ready\nfailed job 1\n",
    "interrupted!", "job", "coroutine")
  here("a wait in a coroutine in a coroutine", 1, "ready\n", "interrupted!", "receive", "deep")
  here("a wait in a coroutine that a job made", 1, "ready\nfailed job 1\n", "interrupted!", "coroutine in a job", "top")
  here("no wait that is over: a script that catches it goes on", 3, "ready\ncaught true, slept on, ran 1\n", nil,
    "receive", "caught in a coroutine")
end)
