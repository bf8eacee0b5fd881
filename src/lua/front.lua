-- The pump: the one place where a user's function is called. Rust decides which job comes next and
-- what becomes of it (pump.rs); the call is made here, so that what a job throws or yields, its
-- tracebacks, hooks and Ctrl-C are the interpreter's own.

local core = ...
local start, step, wait = core.start, core.step, core.wait
local backoff, retry, leave = core.backoff, core.retry, core.leave
local check_run, check_poll = core.check_run, core.check_poll
local check_iter, receive_next = core.check_iter, core.receive_next

-- Kept here, so that a script that changes the globals does not change the queue.
local error, pcall, tostring, type, xpcall = error, pcall, tostring, type, xpcall
local find, huge = string.find, math.huge
local unpack = table.unpack or unpack
local traceback = debug and debug.traceback
local stderr = io and io.stderr

-- Stock 5.1 passes no arguments through xpcall.
local _, passes_arguments = xpcall(function(passed) return passed end, print, true)

-- An error as text, whatever it is and whatever its __tostring does.
local function text_of(thrown)
  local ok, text = pcall(tostring, thrown)
  if ok and type(text) == "string" then return text end
  return "(error object is a " .. type(thrown) .. " value)"
end

-- The stock interpreter's Ctrl-C: its text alone, or after a position.
local function is_interrupt(thrown)
  return type(thrown) == "string"
    and (thrown == "interrupted!" or find(thrown, "^[^\n]*:%d+: interrupted!$") ~= nil)
end

-- Calls a callback of the queue's. What it throws is reported, and changes nothing else; only a
-- Ctrl-C goes on.
local function notify(name, callback, ...)
  local ok, thrown = pcall(callback, ...)
  if ok then return end
  if is_interrupt(thrown) then error(thrown, 0) end
  if stderr then
    stderr:write("queue: ", name, " handler failed: ", text_of(thrown), "\n")
  end
end

-- Takes a job out that has failed, or came too late, and tells `on_error`.
local function give_up(q, job, message, thrown, expired, trace)
  local on_error, id, priority, attempts, retries, payload = leave(q, job)
  if on_error == nil then return end
  notify("on_error", on_error, message or ('job "' .. id .. '" expired before it ran'), {
    id = id,
    priority = priority,
    attempts = attempts,
    retries = retries,
    expired = expired,
    payload = payload,
    error = thrown,
    traceback = trace,
  })
end

-- How long to wait before the next attempt, where the job has a function for it. Returns nil and
-- why there will be none, or nil alone where the function gave up.
local function next_backoff(q, job, thrown)
  local fn, attempts = backoff(q, job)
  if fn == nil then return false end
  local ok, ms = pcall(fn, attempts, thrown)
  if not ok then return nil, text_of(ms), is_interrupt(ms) and ms end
  if type(ms) == "number" and ms == ms then return ms end
  if ms then return nil, "number expected, got " .. (ms ~= ms and "nan" or type(ms)) end
  return nil
end

-- An attempt raised. `may_retry`: the job has attempts left.
local function settle(q, job, may_retry, thrown, trace)
  local interrupt = is_interrupt(thrown) and thrown
  local why
  if may_retry and not interrupt then
    local ms
    ms, why, interrupt = next_backoff(q, job, thrown)
    if ms ~= nil and retry(q, job, ms) then return end
  end
  give_up(q, job, why and "backoff_ms failed: " .. why or text_of(thrown), thrown, false, trace)
  if interrupt then error(interrupt, 0) end
end

local function spread(fn, args)
  return fn(unpack(args, 1, args.n or #args))
end

-- Starts at most `most` attempts and sheds at most `sheds` jobs. `patient`: waits for what is not
-- yet due. Returns how many attempts ended, or nil where it would wait for ever.
local function drive(q, patient, watched, most, sheds)
  local trace
  -- The thrown value goes on as it is: a job's <close> variables see it.
  local function on_throw(thrown)
    if watched and traceback then
      trace = traceback(type(thrown) == "string" and thrown or "", 2)
    end
    return thrown
  end
  local ended = 0
  local fn, job, args, thrown = start(q)
  while true do
    if fn ~= nil then
      ended = ended + 1
      if args == nil then
        fn, job, args, thrown = step(q, job, ended < most, xpcall(fn, on_throw))
      elseif passes_arguments then
        fn, job, args, thrown = step(q, job, ended < most, xpcall(spread, on_throw, fn, args))
      else
        local callee, arguments = fn, args
        local function call() return spread(callee, arguments) end
        fn, job, args, thrown = step(q, job, ended < most, xpcall(call, on_throw))
      end
    elseif job == nil then
      if not patient then return ended end
      local more = wait(q)
      if not more then return more == false and ended or nil end
      fn, job, args, thrown = start(q)
    else
      local what, seen = args, trace
      trace = nil
      if what == "expired" then
        sheds = sheds - 1
        give_up(q, job, nil, nil, true)
      else
        settle(q, job, what == "raised", thrown, seen)
      end
      if ended >= most or sheds <= 0 then return ended end
      fn, job, args, thrown = start(q)
    end
  end
end

local M = {}

function M.run(q)
  local watched = check_run(q)
  local ended = drive(q, true, watched, huge, huge)
  if ended == nil then error("deadlock: run can never complete", 2) end
  return ended
end

function M.poll(q, max)
  local watched, most, sheds = check_poll(q, max)
  if most == 0 then return 0 end
  return (drive(q, false, watched, most, sheds))
end

function M.iter(ch)
  check_iter(ch)
  return function()
    local value = receive_next(ch)
    return value
  end
end

return M
