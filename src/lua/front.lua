-- The pumps: the one place where a user's function is called. Rust decides which job comes next and
-- what becomes of it (pump.rs, turns.rs); the call is made here, so that what a job throws or yields,
-- its tracebacks, hooks and Ctrl-C are the interpreter's own.

local core = ...
local start, step, ended, leave = core.start, core.step, core.ended, core.leave
local succeed, backoff, retry = core.succeed, core.backoff, core.retry
local wants_trace = core.wants_trace
local check_backoff, delay_of = core.check_backoff, core.delay
local advance, equip, land = core.advance, core.equip, core.land
local abandon, coroutine_of = core.abandon, core.coroutine
local check_run, check_poll, check_iter = core.check_run, core.check_poll, core.check_iter
local PARK, DONE = core.park, core.done

-- Kept here, so that a script that changes the globals does not change the queue.
local error, pcall, select = error, pcall, select
local tostring, type, xpcall = tostring, type, xpcall
local compile, find = loadstring or load, string.find
local unpack = table.unpack or unpack
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local close_coroutine = coroutine.close
local traceback = debug and debug.traceback
local stderr = io and io.stderr

-- Stock 5.1 passes no arguments through xpcall.
local _, passes_arguments = xpcall(function(passed) return passed end, print, true)

-- Errors ----------------------------------------------------------------------------------------------

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

-- What callbacks are told of a job.
local function info_of(id, priority, attempts, retries, payload)
  return { id = id, priority = priority, attempts = attempts, retries = retries, payload = payload, expired = false }
end

-- Takes the job in hand out, which has failed or came too late, and tells `on_error`.
local function give_up(q, hand, message, thrown, expired, trace)
  local on_error, id, priority, attempts, retries, payload = leave(q, hand, message, thrown, trace)
  if on_error == nil then return end
  local info = info_of(id, priority, attempts, retries, payload)
  info.expired, info.error, info.traceback = expired, thrown, trace
  notify("on_error", on_error, message or ('job "' .. id .. '" expired before it ran'), info)
end

-- An error has struck the pump: the job that it still has in hand, if it has one, has failed by that.
-- Where even this fails, for want of memory, the job goes without a word.
local function lose(q, hand, thrown)
  if not pcall(give_up, q, hand, text_of(thrown), thrown, false) then leave(q, hand) end
end

-- Files a retry of the job in hand, after `ms` or the job's own backoff, and tells `on_retry`. Returns
-- false where there is to be none.
local function try_again(q, hand, ms, thrown, trace)
  local delay, on_retry, id, priority, attempts, retries, payload = retry(q, hand, ms)
  if on_retry ~= nil then
    local info = info_of(id, priority, attempts, retries, payload)
    info.delay_ms, info.error, info.traceback = delay, thrown, trace
    notify("on_retry", on_retry, text_of(thrown), info)
  end
  return delay
end

-- The attempt in hand, or that of job `number`, ended well with these results: tells `on_success`.
local function tell_success(q, hand, number, ...)
  local on_success, id, priority, attempts, retries, payload = succeed(q, hand, number)
  if on_success ~= nil then
    notify("on_success", on_success, info_of(id, priority, attempts, retries, payload), ...)
  end
end

-- How long to wait before the next attempt, where the job has a function for it: false where it has
-- none, nil where the function gave up, or nil, why it failed, and the Ctrl-C if that was it.
local function next_backoff(q, hand, thrown)
  local fn, attempts = backoff(q, hand)
  if fn == nil then return false end
  local ok, ms = pcall(fn, attempts, thrown)
  if not ok then return nil, text_of(ms), is_interrupt(ms) and ms end
  if type(ms) == "number" and ms == ms then return ms end
  if ms then return nil, "number expected, got " .. (ms ~= ms and "nan" or type(ms)) end
  return nil
end

-- The attempt in hand raised. `may_retry`: its job has attempts left.
local function settle(q, hand, may_retry, thrown, trace)
  local interrupt = is_interrupt(thrown) and thrown
  local why
  if may_retry and not interrupt then
    local ms
    ms, why, interrupt = next_backoff(q, hand, thrown)
    if ms ~= nil and try_again(q, hand, ms, thrown, trace) then return end
  end
  give_up(q, hand, why and "backoff_ms failed: " .. why or text_of(thrown), thrown, false, trace)
  if interrupt then error(interrupt, 0) end
end

-- Waits that yield --------------------------------------------------------------------------------------

-- Where a C function can be continued after a yield, one that parks its job yields by itself. Elsewhere
-- it returns PARK, and a wrapper yields. A resume is not to be believed, as a stranger can resume a
-- job's coroutine: the function to go on with says PARK again while the job still waits.
local function give_way()
  if not core.must_try then return yield(PARK) end
  -- Lua 5.2 cannot tell beforehand. Where the yield fails, in a sort callback say, the thread waits.
  if not pcall(yield, PARK) then core.block() end
end

-- Waits return up to three values; a trailing nil is none. No call here is a tail call, for then the
-- errors of what is called could not name the line of who called the wrapper. A select lists its
-- channels in a table of its own, its third argument. The wrapper is compiled for each function anew:
-- LuaJIT makes better traces of functions that do not share their code (99 and 124 ns for a pair).
local wrapper = [[
local call, go_on, PARK, give_way, lists = ...
return function(a, b, c)
  if lists then c = {} end
  local x, y, z = call(a, b, c)
  while x == PARK do
    give_way()
    x, y, z = go_on(a, b, c)
  end
  if z ~= nil then return x, y, z end
  if y ~= nil then return x, y end
  if x ~= nil then return x end
end
]]

local function parking(call, go_on, lists)
  if core.continues then return call end
  return compile(wrapper, "=queue")(call, go_on, PARK, give_way, lists)
end

local wait = parking(core.wait, core.wait_resumed)
local idle = parking(core.idle, core.idle_resumed)
local next_value, next_resumed = core.next, core.next_resumed

-- The pump ----------------------------------------------------------------------------------------------

local function spread(fn, args)
  return fn(unpack(args, 1, args.n or #args))
end

-- Ends the attempt in hand like `step`, for a queue with an `on_success`.
local function step_and_tell(q, hand, ok, ...)
  if not ok then return step(q, hand, false, ...) end
  tell_success(q, hand, nil, ...)
  return start(q, hand)
end

-- Runs one job after the other, as many as the hand allows. `after` ends an attempt. `patient`: waits
-- for what is not yet due. Returns false where it would wait for ever.
local function drive(q, hand, after, patient)
  local trace
  -- The thrown value goes on as it is: a job's <close> variables see it.
  local function on_throw(thrown)
    if traceback and (wants_trace(q, hand) or is_interrupt(thrown)) then
      trace = traceback(type(thrown) == "string" and thrown or "", 2)
    end
    return thrown
  end
  local fn, args, what, thrown = start(q, hand)
  while true do
    if fn ~= nil then
      if args == nil then
        fn, args, what, thrown = after(q, hand, xpcall(fn, on_throw))
      elseif passes_arguments then
        fn, args, what, thrown = after(q, hand, xpcall(spread, on_throw, fn, args))
      else
        local callee, arguments = fn, args
        local function call() return spread(callee, arguments) end
        fn, args, what, thrown = after(q, hand, xpcall(call, on_throw))
      end
    elseif what == nil then
      if not patient then return true end
      local more = wait(q)
      if not more then return more == false end
      fn, args, what, thrown = start(q, hand)
    else
      if what == "expired" then
        give_up(q, hand, nil, nil, true)
      else
        local seen = trace
        trace = nil
        settle(q, hand, what == "raised", thrown, seen)
      end
      fn, args, what, thrown = start(q, hand)
    end
  end
end

-- Drives, and lets what that raises go on: a Ctrl-C, or the error of a hook. A job that the pump
-- still has in hand then has failed by it.
local function pump(q, hand, told, patient)
  local after = told and step_and_tell or step
  -- Stock 5.1 cannot yield through pcall, and a job in here may wait.
  if not passes_arguments then return (drive(q, hand, after, patient)) end
  local ok, result = pcall(drive, q, hand, after, patient)
  if ok then return result end
  step(q, hand, false)
  lose(q, hand, result)
  error(result, 0)
end

-- The pump of concurrent jobs --------------------------------------------------------------------------

-- The body of a job's coroutine, which serves one job after the other.
local function work(fn, args)
  while true do
    if args == nil then
      fn, args = yield(DONE, fn())
    else
      fn, args = yield(DONE, spread(fn, args))
    end
  end
end

local function pack(...)
  return { n = select("#", ...), ... }
end

-- Tells how the coroutine of job `number` came back like `advance`, for a queue with an `on_success`.
local function advance_and_tell(q, hand, number, ok, token, ...)
  if not ok or token ~= DONE then return advance(q, hand, number, ok, token, ...) end
  tell_success(q, hand, number, ...)
  return advance(q, hand)
end

-- A job's coroutine raised, and is dead or is to be.
local function bury(q, hand, may_retry, co, thrown)
  local trace
  -- There is none yet where a hook has struck before it was made.
  if co ~= nil then
    if traceback and (wants_trace(q, hand) or is_interrupt(thrown)) then
      trace = traceback(co, type(thrown) == "string" and thrown or "")
    end
    if close_coroutine then close_coroutine(co) end
  end
  settle(q, hand, may_retry, thrown, trace)
end

-- Makes one turn: resumes each job that can go on, then starts others.
local function turn(q, hand, told)
  local after = told and advance_and_tell or advance
  local co, number, fn, args, thrown = advance(q, hand)
  while true do
    if fn ~= nil then
      if co == nil then
        co = create(work)
        equip(q, number, co)
      end
      co, number, fn, args, thrown = after(q, hand, number, resume(co, fn, args))
    elseif co ~= nil then
      co, number, fn, args, thrown = after(q, hand, number, resume(co))
    elseif number == nil then
      return
    elseif number == "again" then
      -- So that hooks get their turn: a Ctrl-C is one.
      co, number, fn, args, thrown = advance(q, hand)
    elseif number == "outward" then
      -- What a job yields goes to who resumed the pump, and what comes back goes to the job.
      local answer = pack(pcall(yield, unpack(thrown, 1, thrown.n)))
      number = args
      if answer[1] then
        co = coroutine_of(q, hand, number)
        co, number, fn, args, thrown =
          after(q, hand, number, resume(co, unpack(answer, 2, answer.n)))
      else
        co, number, fn, args, thrown = advance(q, hand, number, false, answer[2])
      end
    else
      if number == "expired" then
        give_up(q, hand, nil, nil, true)
      else
        bury(q, hand, number == "raised", args, thrown)
      end
      co, number, fn, args, thrown = advance(q, hand)
    end
  end
end

-- Makes turns until nothing is left to do. Returns false where it would wait for ever.
local function turns(q, hand, told)
  local more
  repeat
    turn(q, hand, told)
    more = idle(q)
  until not more
  return more == false
end

-- Calls `body` and lets the queue know when it is left, in whatever way. Returns how many attempts
-- ended, and what the body returned.
local function fly(body, q, hand, told)
  local ok, result = pcall(body, q, hand, told)
  if ok then return land(q), result end
  -- What went between the pump and a job's coroutine has struck that job.
  local number = abandon(q, hand)
  if number ~= nil then
    local _, _, _, co = advance(q, hand, number, false, result)
    pcall(bury, q, hand, false, co, result)
  end
  lose(q, hand, result)
  land(q)
  error(result, 0)
end

-- What scripts see ---------------------------------------------------------------------------------------

local M = {
  send = parking(core.send, core.send_resumed),
  receive = parking(core.receive, core.receive_resumed),
  select = parking(core.select, core.select_resumed, true),
  sleep = core.sleep,
}

if not core.continues then
  local sleep, sleep_resumed = core.sleep, core.sleep_resumed
  function M.sleep(...)
    local what = sleep(...)
    while what == PARK do
      give_way()
      what = sleep_resumed()
    end
  end
end

-- The arguments are passed on as they came: an absent one is "no value", not nil.
function M.run(...)
  local hand, concurrent, told = check_run(...)
  local q = ...
  local count, comes
  if concurrent then
    count, comes = fly(turns, q, hand, told)
  else
    comes = pump(q, hand, told, true)
    count = ended(hand)
  end
  if not comes then error("deadlock: run can never complete", 2) end
  return count
end

function M.poll(...)
  local hand, concurrent, told = check_poll(...)
  local q = ...
  if concurrent then
    local count = fly(turn, q, hand, told)
    return count
  end
  pump(q, hand, told, false)
  local count = ended(hand)
  return count
end

function M.iter(...)
  check_iter(...)
  local ch = ...
  return function()
    local value = next_value(ch)
    while value == PARK do
      give_way()
      value = next_resumed(ch)
    end
    return value
  end
end

function M.backoff(...)
  local base, factor, most, jitter = check_backoff(...)
  return function(...)
    local ms = delay_of(base, factor, most, jitter, ...)
    return ms
  end
end

function M.close(q)
  local waiting = core.close(q)
  if waiting and close_coroutine then
    for i = 1, #waiting do close_coroutine(waiting[i]) end
  end
end

return M
