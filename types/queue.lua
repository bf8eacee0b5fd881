---@meta queue

-- Types and short documentation of the `queue` module, for editors and checkers that read LuaLS / EmmyLua
-- annotations. This file is never run; the module itself is `queue.so`.
--
-- Units: every time is in milliseconds; fractions count, `math.huge` is for ever, a negative duration is 0 and
-- NaN raises. Misuse (a wrong type, an unknown option, NaN) raises a string at the caller's line and changes
-- nothing. What can happen in a correct program is returned: `nil, reason` or `false, reason`.

---A job queue and channels. Jobs, callbacks and everything else of yours run on the Lua thread that calls the
---module, one at a time.
---@class queue
---@field VERSION string The version alone: `"0.1.0"`.
---@field _VERSION string Name and version: `"queue 0.1.0"`.
local queue = {}

--------------------------------------------------------------------------------------------------------------
-- Values and tables
--------------------------------------------------------------------------------------------------------------

---A function, or a table or userdata with a `__call` metamethod.
---@alias queue.Callable (fun(...: any): any)|table|userdata

---How long to wait before a retry: a number of milliseconds, or a function that is given the number of attempts
---made so far and the value that the job threw, and answers with milliseconds. `nil` or `false` from the
---function gives the job up at once.
---@alias queue.Backoff number|(fun(attempts: integer, err: any): number|false|nil)

---Why a push was refused. They are looked at in this order: stopped, full.
---@alias queue.Refusal "queue is stopped"|"queue is full"

---Options of `queue.new`.
---@class queue.Options
---Most pending jobs, ready and delayed ones together; an integer >= 0. 0 or absent: no bound.
---@field capacity? integer
---Called when a job has failed for good, and when a job was shed because its start deadline had passed. `msg`
---is always a string. An error in the callback is reported on standard error and changes nothing else.
---@field on_error? fun(msg: string, info: queue.Info)|table|userdata

---Options of `Queue:push`. The table is read once, at the call.
---@class queue.PushOptions
---Higher runs first; an integer, default 0. Integral floats are integers.
---@field priority? integer
---The job does not start before that many milliseconds have passed.
---@field delay_ms? number
---How often a job that raises is tried again: at most `retries + 1` attempts; an integer >= 0, default 0.
---@field retries? integer
---Milliseconds before each retry, or a function that tells them. Default 0: at once.
---@field backoff_ms? queue.Backoff
---Deadline on *starting*, in milliseconds from when the job may start. A job whose turn comes later is shed
---unrun. It does not cut a running job short. 0 or absent: none.
---@field timeout_ms? number
---Arguments of the job at every attempt, an array. `args.n`, where given, is the count, so nils survive.
---@field args? table
---Any value; handed to the callbacks as `info.payload`.
---@field payload? any
---A name of your own; may repeat. Absent: `job-1`, `job-2`, ... are made up.
---@field id? string

---What a callback is told of a job.
---@class queue.Info
---@field id string The job's id.
---@field priority integer The job's priority.
---@field attempts integer Attempts that were made: 1 for a job that failed at once, 0 for one shed before its first.
---@field retries integer The option `retries`.
---@field expired boolean True where the job was shed unrun because its start deadline had passed.
---@field payload any The option `payload`.
---@field error any The value that the job threw, itself.
---@field traceback? string Where it was thrown.

---What `Queue:metrics` answers. At any time
---`enqueued = succeeded + failed + expired + cancelled + cleared + pending + in_flight`,
---where the cleared jobs are a part of `dropped`.
---@class queue.Metrics
---@field enqueued integer Jobs that were accepted.
---@field processed integer Attempts that ended: `succeeded + failed + retried`.
---@field succeeded integer Jobs that returned.
---@field failed integer Jobs that raised on their last attempt.
---@field retried integer Attempts that raised and were filed again.
---@field expired integer Jobs shed unrun because their start deadline had passed.
---@field dropped integer Refused pushes and cleared jobs.
---@field cancelled integer Jobs that were taken out one by one. No call of this version does so: 0.
---@field pending integer Jobs that wait now, ready and delayed.
---@field in_flight integer Jobs that have started and not ended.
---@field avg_wait_ms number Mean time from when an attempt might start to its start; 0 without samples.
---@field max_wait_ms number The longest of them.
---@field avg_exec_ms number Mean time an attempt took; 0 without samples.
---@field max_exec_ms number The longest of them.

--------------------------------------------------------------------------------------------------------------
-- Jobs
--------------------------------------------------------------------------------------------------------------

---A job queue. `#q` is the number of pending jobs; `tostring(q)` gives `queue(pending=2)` or
---`queue(pending=2, stopped)`. On Lua 5.4 a `local q <close>` is stopped and cleared at the end of its block.
---@class queue.Queue
---@operator len: integer
local Queue = {}

---Puts a job in the queue. Jobs run by priority, highest first, and in push order among equals.
---
---Raises where `fn` cannot be called, and for a wrong or unknown option; then nothing is queued.
---
---```lua
---local id, why = q:push(print, { args = { "hello" }, priority = 10, delay_ms = 5 })
---if not id then print("refused: " .. why) end
---q:run()  --> hello
---```
---@param fn queue.Callable The job. It is called with `opts.args`; what it returns is not kept.
---@param opts? queue.PushOptions
---@return string? id The job's id, or nil where the push was refused.
---@return queue.Refusal? reason Why it was refused.
function Queue:push(fn, opts) end

---Runs jobs until none is pending; waits out delays and backoffs. It also returns once the queue is stopped.
---
---Raises `deadlock: ...` where all that is pending is due at `math.huge`, and passes on `interrupted!` (Ctrl-C).
---What a job throws never comes out of `run`: it goes to `retries` and `on_error`.
---
---```lua
---q:push(function() print("once") end)
---print(q:run())
-----> once
-----> 1
---```
---@return integer attempts Attempts that ended in this call, retries included.
function Queue:run() end

---Runs what is due and returns; it never sleeps. Without `max` it starts at most as many attempts as were due when
---it was called, so it ends whatever the jobs push.
---
---```lua
---q:push(print, { args = { "now" } })
---q:push(print, { args = { "later" }, delay_ms = 60000 })
---print(q:poll(), q:size())
-----> now
-----> 1  1
---```
---@param max? integer Most attempts to start. 0 or absent: as many as were due when `poll` was called.
---@return integer attempts Attempts that ended in this call.
function Queue:poll(max) end

---Stops the queue for good: no job starts any more, pushes are refused, and `run` returns once the job in flight
---is done. Pending jobs stay and are counted. A job in flight that raises after the stop is not retried.
---
---```lua
---q:stop()
---print(q:push(print))  --> nil  queue is stopped
---```
function Queue:stop() end

---Whether the queue was stopped.
---
---```lua
---print(q:is_stopped())  --> false
---```
---@return boolean
function Queue:is_stopped() end

---The number of pending jobs, ready and delayed; the same as `#q`.
---
---```lua
---q:push(print, { delay_ms = 1000 })
---print(q:size())  --> 1
---```
---@return integer
function Queue:size() end

---Whether nothing is pending.
---
---```lua
---print(q:empty())  --> true
---```
---@return boolean
function Queue:empty() end

---Drops every pending job, parked retries included. A job in flight goes on.
---
---```lua
---q:push(print)
---print(q:clear(), q:size())  --> 1  0
---```
---@return integer dropped How many they were.
function Queue:clear() end

---The number of jobs that have started and not ended.
---
---```lua
---q:push(function() print(q:in_flight()) end)
---q:run()  --> 1
---```
---@return integer
function Queue:in_flight() end

---How long until `poll` has something to do, for loops that sleep by themselves.
---
---```lua
---print(q:next_due())  --> nil
---q:push(print, { args = { "hi" } })
---print(q:next_due() == 0)  --> true
---```
---@return number? ms 0: now. `math.huge`: only an outside event can wake anything. nil: nothing is pending or in
---flight, or the queue is stopped and nothing is in flight.
function Queue:next_due() end

---Counters and times since the queue was made.
---
---```lua
---q:push(function() error("no") end, { retries = 1 })
---q:run()
---local m = q:metrics()
---print(string.format("%d processed, %d retried, %d failed", m.processed, m.retried, m.failed))
-----> 2 processed, 1 retried, 1 failed
---```
---@return queue.Metrics
function Queue:metrics() end

--------------------------------------------------------------------------------------------------------------
-- Channels
--------------------------------------------------------------------------------------------------------------

---A channel of Lua values, first in, first out. `#ch` is the number of buffered values; `tostring(ch)` gives
---`channel(2/3)` or `channel(2/3, closed)`. On Lua 5.4 a `local ch <close>` is closed at the end of its block.
---@class queue.Channel
---@operator len: integer
local Channel = {}

---Sends a value; waits for room. `false` is a value, nil is not.
---
---Raises `send on closed channel`, `cannot send nil`, and `deadlock: ...` where nothing can ever make room.
---A timer's channel takes no sends.
---
---```lua
---print(ch:send("first"))  --> true
---```
---@param value any Anything but nil.
---@param timeout_ms? number Longest wait in milliseconds. 0 tries once; absent: no limit.
---@return boolean sent
---@return "timeout"? reason
function Channel:send(value, timeout_ms) end

---Sends a value if that needs no waiting.
---
---```lua
---while ch:try_send("x") do end
---print(ch:try_send("x"))  --> false  full
---```
---@param value any Anything but nil.
---@return boolean sent
---@return "full"|"closed"|nil reason
function Channel:try_send(value) end

---Receives the oldest value; waits for one. A value outranks `"closed"`, and that outranks `"timeout"`.
---Test `ok`, not the value: `false` can be sent.
---
---Raises `deadlock: ...` where nothing can ever send.
---
---```lua
---ch:send("first")
---local v, ok, why = ch:receive(100)
---print(v, ok, why)  --> first  true  nil
---```
---@param timeout_ms? number Longest wait in milliseconds. 0 tries once; absent: no limit.
---@return any value The value, or nil.
---@return boolean ok Whether a value was received.
---@return "timeout"|"closed"|nil reason
function Channel:receive(timeout_ms) end

---Receives a value if that needs no waiting.
---
---```lua
---print(ch:try_receive())  --> nil  false  empty
---```
---@return any value The value, or nil.
---@return boolean ok Whether a value was received.
---@return "empty"|"closed"|nil reason
function Channel:try_receive() end

---For a generic `for`: receives until the channel is closed and drained. It waits as `receive` does, and holds
---the channel alive.
---
---```lua
---ch:send("a"); ch:send("b"); ch:close()
---for v in ch:iter() do print(v) end
-----> a
-----> b
---```
---@return fun(): any
function Channel:iter() end

---Closes the channel: no more sends. What is buffered can still be received; every waiter is woken, and the
---value of a sender that was waiting is not delivered. Closing twice is no error. Closing a timer's channel before its time
---cancels the timer.
---
---```lua
---ch:close()
---print(ch:try_send("late"))  --> false  closed
---```
function Channel:close() end

---Whether the channel was closed. Values may still be buffered.
---
---```lua
---print(ch:is_closed())  --> false
---```
---@return boolean
function Channel:is_closed() end

---Timers only, else it raises: cancels the timer, closes its channel and drops what was not received. Nothing
---arrives after a stop. Stopping twice is no error.
---
---```lua
---local ticker = queue.tick(10)
---ticker:stop()
---print(ticker:receive())  --> nil  false  closed
---```
function Channel:stop() end

---The number of buffered values; the same as `#ch`. An unbuffered channel has none.
---
---```lua
---ch:send("x")
---print(ch:len(), #ch)  --> 1  1
---```
---@return integer
function Channel:len() end

---The capacity the channel was made with; 0 is unbuffered.
---
---```lua
---print(queue.channel(8):cap())  --> 8
---```
---@return integer
function Channel:cap() end

--------------------------------------------------------------------------------------------------------------
-- The module
--------------------------------------------------------------------------------------------------------------

---Makes a job queue. Raises for a wrong or unknown option.
---
---```lua
---local mail = queue.new{
---  capacity = 1000,
---  on_error = function(msg, info) print(info.id .. ": " .. msg) end,
---}
---mail:push(function() error("no route", 0) end, { id = "welcome" })
---mail:run()  --> welcome: no route
---```
---@param opts? queue.Options
---@return queue.Queue
function queue.new(opts) end

---Makes a channel.
---
---```lua
---print(queue.channel(3))  --> channel(0/3)
---```
---@param capacity? integer Buffered values at most; an integer >= 0. 0 or absent: unbuffered.
---@return queue.Channel
function queue.channel(capacity) end

---Makes a timer that goes off once: a channel of capacity 1 that gives `value` after `ms` and is then closed.
---
---Raises `cannot start a timer thread: ...` where the system refuses a thread.
---
---```lua
---local v, ok = queue.after(5, "tea is ready"):receive()
---print(v, ok)  --> tea is ready  true
---```
---@param ms number Milliseconds from now.
---@param value? any Default `true`; `false` is kept.
---@return queue.Channel
function queue.after(ms, value) end

---Makes a ticker: a channel of capacity 1 that gives `true` every `ms`, first after one interval, until
---`:stop()`. Ticks that are not received in time are dropped, never piled up; the phase is kept.
---
---Raises `interval must be > 0`, and `cannot start a timer thread: ...`.
---
---```lua
---local ticker = queue.tick(5)
---for i = 1, 2 do ticker:receive(); print("tick " .. i) end
---ticker:stop()
-----> tick 1
-----> tick 2
---```
---@param ms number The interval in milliseconds, more than 0.
---@return queue.Channel
function queue.tick(ms) end

---Waits. It blocks the thread, jobs included. `queue.sleep(math.huge)` raises `deadlock: ...`.
---
---```lua
---local before = queue.now()
---queue.sleep(10)
---print(queue.now() - before >= 10)  --> true
---```
---@param ms number Milliseconds.
function queue.sleep(ms) end

---A monotonic clock: it never goes back, and setting the system's clock does not move it. Only differences mean
---anything.
---
---```lua
---print(queue.now() <= queue.now())  --> true
---```
---@return number ms
function queue.now() end

return queue
