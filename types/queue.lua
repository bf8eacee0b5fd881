---@meta queue

-- Types and short documentation of the `queue` module, for editors and checkers that read LuaLS / EmmyLua
-- annotations. This file is never run; the module itself is `queue.so`.
--
-- Units: every time is in milliseconds; fractions count, `math.huge` is for ever, a negative duration is 0 and
-- NaN raises. Misuse (a wrong type, an unknown option, NaN) raises a string at the caller's line and changes
-- nothing. What can happen in a correct program is returned: `nil, reason` or `false, reason`.

---A job queue and channels. Jobs, callbacks and everything else of yours run on the Lua thread that calls the
---module, one at a time. With `concurrency` above 1, jobs take turns where they wait.
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

---Why a push was refused. They are looked at in this order: stopped, duplicate, full.
---@alias queue.Refusal "queue is stopped"|"duplicate id"|"queue is full"

---How a job stands: it has started and not ended, it may start, or its time has not come yet.
---@alias queue.Status "running"|"ready"|"delayed"

---One case of `queue.select`: a channel to receive from; `{ channel, value }`, a value to send; or `false`, which is
---never ready. (Not nil: a table has no place for it.)
---@alias queue.Case queue.Channel|{ [1]: queue.Channel, [2]: any }|false

---Options of `queue.new`.
---@class queue.Options
---Most pending jobs, ready and delayed ones together; an integer >= 0. 0 or absent: no bound.
---@field capacity? integer
---How many jobs may be in flight at once; an integer >= 1 or `math.huge`, default 1. With 1 a job runs from start to
---end, and where it waits everything waits. Above 1 each job is a coroutine, and where one waits (`send`, `receive`,
---`select`, `sleep`, `iter`, another queue's `run`) or calls `coroutine.yield()` the others go on. Still only one
---runs at any instant.
---@field concurrency? number
---Called when a job has failed for good, and when a job was shed because its start deadline had passed. `msg`
---is always a string. An error in the callback is reported on standard error and changes nothing else.
---@field on_error? fun(msg: string, info: queue.Info)|table|userdata
---Called when an attempt has raised and its retry is filed: a `cancel` or `clear` in it still catches that.
---`info.delay_ms` is how long the retry waits. Guarded like `on_error`.
---@field on_retry? fun(msg: string, info: queue.RetryInfo)|table|userdata
---Called when a job has returned, with its results. Guarded like `on_error`.
---@field on_success? fun(info: queue.Info, ...: any)|table|userdata
---How many failed jobs are kept for `Queue:failed` and `Queue:retry`, the last so many; an integer >= 0, default 0.
---@field keep_failed? integer
---At most so many starts in any window of so much time, retries included. Absent: no limit.
---@field limit? queue.Limit

---At most `jobs` starts in any window of `per_ms`.
---@class queue.Limit
---@field jobs integer Starts, >= 1.
---@field per_ms number Length of the window in milliseconds; > 0 and finite.

---Options of `queue.backoff`.
---@class queue.BackoffOptions
---@field base_ms? number Milliseconds before the first retry, default 100.
---@field factor? number By how much each delay is longer than the one before, default 2.
---@field max_ms? number The longest delay, jitter included, default 60000.
---@field jitter? number By how large a share of itself a delay may be shorter or longer, at random; default 0.1.

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
---True: the push is refused with `"duplicate id"` while a job of that id is pending or running.
---@field unique? boolean

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

---What `on_retry` is told of a job.
---@class queue.RetryInfo: queue.Info
---@field delay_ms number Milliseconds until the retry may start.

---A failed job that was kept.
---@class queue.FailedInfo: queue.Info
---@field message string What `on_error` was told.

---A job that is alive, as `Queue:jobs` shows it.
---@class queue.JobInfo
---@field id string The job's id.
---@field status queue.Status How it stands.
---@field priority integer The job's priority.
---@field attempts integer Attempts begun, one that runs included.
---@field due_ms? number Milliseconds until its time comes, 0 when due, whatever a pause or a limit says; nil in flight.
---@field running_ms? number Milliseconds since its attempt started; nil unless in flight.
---@field payload any The option `payload`.

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
---@field cancelled integer Pending jobs that `cancel` removed, and concurrent jobs that were waiting when their queue
---was closed by `<close>`.
---@field pending integer Jobs that wait now, ready and delayed.
---@field in_flight integer Jobs that have started and not ended.
---@field avg_wait_ms number Mean time from when an attempt might start to its start; 0 without samples.
---@field max_wait_ms number The longest of them.
---@field avg_exec_ms number Mean time an attempt took, its waits included; 0 without samples.
---@field max_exec_ms number The longest of them.
---@field p50_wait_ms number Half of the waits were no longer, within 2 %; 0 without samples.
---@field p95_wait_ms number 95 % of the waits were no longer.
---@field p99_wait_ms number 99 % of the waits were no longer.
---@field p50_exec_ms number Half of the attempts took no longer, within 2 %; 0 without samples.
---@field p95_exec_ms number 95 % of the attempts took no longer.
---@field p99_exec_ms number 99 % of the attempts took no longer.

--------------------------------------------------------------------------------------------------------------
-- Jobs
--------------------------------------------------------------------------------------------------------------

---A job queue. `#q` is the number of pending jobs; `tostring(q)` gives `queue(pending=2)` or
---`queue(pending=2, stopped)`. On Lua 5.4 a `local q <close>` is stopped and cleared at the end of its block, and
---the coroutines of concurrent jobs that still wait are closed; these count as cancelled.
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
---@param fn queue.Callable The job. It is called with `opts.args`; what it returns goes to `on_success`.
---@param opts? queue.PushOptions
---@return string? id The job's id, or nil where the push was refused.
---@return queue.Refusal? reason Why it was refused.
function Queue:push(fn, opts) end

---Runs jobs until none is pending and none in flight; waits out delays, backoffs, pauses and the limit. It also returns
---once the queue is stopped, or paused without end, and what was in flight has ended.
---
---Raises `deadlock: ...` where all that is pending is due at `math.huge` and nothing is in flight, and passes on
---`interrupted!` (Ctrl-C). What a job throws never comes out of `run`: it goes to `retries` and `on_error`. Concurrent
---jobs that wait for each other without end fail one by one, the longest waiting first, with `deadlock: ...` at
---their own line.
---
---With `concurrency` 1 a job may call `run` on its own queue, and so may a second coroutine. Above 1 that raises
---`queue is already running`.
---
---```lua
---q:push(function() print("once") end)
---print(q:run())
-----> once
-----> 1
---```
---@return integer attempts Attempts that ended in this call, retries included.
function Queue:run() end

---Runs what is due, and what a pause or the limit does not hold back, and returns; it never sleeps. Without `max` it
---starts at most as many attempts as were due when it was called, so it ends whatever the jobs push. With `concurrency`
---above 1 it first resumes, once, each job in flight that can go on. Above 1 it raises `queue is already running`
---inside a `run` or `poll` of the same queue.
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

---Puts a recurring job in the queue: `fn` is called every `ms` milliseconds, first after one interval or after
---`delay_ms`. The beats keep that phase however long they take; of beats that were missed only the latest is made up.
---One beat is alive at a time. When it has ended for good (it returned, failed its last attempt, or was shed), the next
---is filed, before the callbacks are called. `capacity` refuses no beat.
---
---The series ends with `cancel(id)`, `clear()` or `stop()`, also during a beat: then neither a retry nor a beat
---follows.
---
---Raises `bad argument #1 to 'every' (interval must be > 0, got 0)`, and what `push` raises.
---
---```lua
---local n = 0
---q:every(5, function()
---  n = n + 1
---  if n == 3 then q:cancel("beat") end
---end, { id = "beat" })
---print(q:run())  --> 3
---```
---@param ms number Interval in milliseconds, > 0.
---@param fn queue.Callable The job.
---@param opts? queue.PushOptions As for `push`; `unique` is looked at in this call only.
---@return string? id The id of all its beats, or nil where the call was refused.
---@return "queue is stopped"|"duplicate id"|nil reason Why it was refused.
function Queue:every(ms, fn, opts) end

---Removes the pending jobs of an id, parked retries included, and lets go of all they hold. A job in flight is not
---touched; but if it is a beat of a series, that ends with it, and counts. No callback is called.
---
---Raises where `id` is no string.
---
---```lua
---q:push(print, { id = "mail", delay_ms = 1000 })
---print(q:cancel("mail"), q:cancel("mail"))  --> 1  0
---```
---@param id string One that `push` or `every` returned.
---@return integer cancelled How many they were.
function Queue:cancel(id) end

---How a job stands. Where several have the id: `"running"` if one is, else `"ready"` if one is, else `"delayed"`. A
---retry that waits out its backoff is delayed. Raises where `id` is no string.
---
---```lua
---q:push(print, { id = "mail", delay_ms = 1000 })
---print(q:status("mail"), q:status("letter"))  --> delayed  nil
---```
---@param id string One that `push` or `every` returned.
---@return queue.Status? status nil: no job of that id is pending or in flight.
function Queue:status(id) end

---Moves the pending jobs of an id to another priority, where push order counts among equals. Later beats of a series
---keep it. A job in flight is not touched, nor is a series whose beat is.
---
---Raises where `id` is no string or `priority` no integer.
---
---```lua
---q:push(print, { args = { "first" } })
---q:push(print, { args = { "urgent" }, id = "mail" })
---q:set_priority("mail", 10)
---q:run()
-----> urgent
-----> first
---```
---@param id string One that `push` or `every` returned.
---@param priority integer Higher runs first; integral floats are integers.
---@return integer moved How many they were.
function Queue:set_priority(id, priority) end

---What is alive: jobs in flight in the order of their starts, then ready ones as they would start, then delayed ones
---by due time. A new table at each call; it costs time in proportion to their number.
---
---```lua
---q:push(print, { id = "mail", delay_ms = 1000 })
---for _, job in ipairs(q:jobs()) do print(job.id, job.status) end  --> mail  delayed
---```
---@return queue.JobInfo[] jobs
function Queue:jobs() end

---The failed jobs that are kept (`keep_failed`), oldest first. New tables at each call.
---
---```lua
---local jobs = queue.new{ keep_failed = 10 }
---jobs:push(function() error("no answer", 0) end, { id = "mail" })
---jobs:run()
---print(jobs:failed()[1].id, jobs:failed()[1].message)  --> mail  no answer
---```
---@return queue.FailedInfo[] failed
function Queue:failed() end

---Takes the newest failed job of an id out of those that are kept, and pushes it again with the options it had: due at
---once, attempts from 0. A beat of a series comes back as one plain job. Raises where `id` is no string.
---
---```lua
---local up = false
---local jobs = queue.new{ keep_failed = 10 }
---jobs:push(function() assert(up); print("sent") end, { id = "mail" })
---jobs:run()
---up = true
---print(jobs:retry("mail"))
---jobs:run()
---print(jobs:retry("mail"))
-----> mail
-----> sent
-----> nil  no such job
---```
---@param id string
---@return string? id nil where the job was not pushed.
---@return queue.Refusal|"no such job"|nil reason After a refusal of `push` the job is still kept.
function Queue:retry(id) end

---Lets no job start for a while. `run` waits it out; `poll` starts nothing. Without a time, or with `math.huge`, until
---`resume`; then `run` returns once what is in flight is done. The last call counts. Pushes go on, and nothing is shed.
---
---Raises where `ms` is no number, or NaN.
---
---```lua
---q:push(print)
---q:pause()
---print(q:run(), q:size())  --> 0  1
---```
---@param ms? number Milliseconds from now; 0 or less ends a pause.
function Queue:pause(ms) end

---Ends a pause.
---
---```lua
---q:pause(); q:resume()
---print(q:is_paused())  --> false
---```
function Queue:resume() end

---Whether a pause holds starts back now.
---
---```lua
---q:pause(1000)
---print(q:is_paused())  --> true
---```
---@return boolean
function Queue:is_paused() end

---Stops the queue for good: no job starts any more, pushes are refused, and `run` returns once what is in flight
---is done. Pending jobs stay and are counted. A job in flight that raises after the stop is not retried. Series end.
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

---Drops every pending job, parked retries included, and ends every series. A job in flight goes on.
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

---How long until `poll` has something to do, for loops that sleep by themselves: until a delay, a pause or the option
---`limit` lets a job start. A concurrent job that waits with a time limit, or at a timer's channel, counts with that
---time.
---
---```lua
---print(q:next_due())  --> nil
---q:push(print, { args = { "hi" } })
---print(q:next_due() == 0)  --> true
---```
---@return number? ms 0: now. `math.huge`: only an outside event or `resume` can wake anything. nil: nothing is pending
---or in flight, or the queue is stopped and nothing is in flight.
function Queue:next_due() end

---A file descriptor for other event loops: it polls readable while something outside the queue has made a job in
---flight ready: a value in the channel it waits at, a timer, another thread. Call `poll` then. It is made at the
---first call and belongs to the queue, which closes it when it is collected: keep the queue as long as a loop watches
---the descriptor, and do not close, read or write it.
---
---```lua
---local jobs = queue.new{ concurrency = 10 }
---print(type(jobs:getfd()))  --> number
---```
---@return integer? fd nil where there is none: not on this system, or the process has too many open.
---@return string? reason The system's words.
function Queue:getfd() end

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
---`channel(2/3)` or `channel(2/3, closed)`. On Lua 5.4 a `local ch <close>` is closed at the end of its block, and a
---timer's is stopped.
---
---Whoever waits is served in the order in which the waits began. A wait in a concurrent job lets the others go on;
---anywhere else it blocks the thread.
---
---Two handles on one shared channel are equal (`==`), but not the same key of a table.
---@class queue.Channel
---@operator len: integer
local Channel = {}

---Sends a value; waits for room. `false` is a value, nil is not.
---
---Raises `send on closed channel`, also where the channel is closed during the wait; `cannot send nil`; and
---`deadlock: ...` where nothing can ever make room. A timer's channel takes no sends. A shared channel takes what can
---be copied, and raises `value.users[3].callback: a function cannot be copied` for the rest.
---
---```lua
---print(ch:send("first"))  --> true
---```
---@param value any Anything but nil.
---@param timeout_ms? number Longest wait in milliseconds. 0 tries once; absent: no limit.
---@return boolean sent
---@return "timeout"? reason
function Channel:send(value, timeout_ms) end

---Sends a value if that needs no waiting: there is room, or a receiver waits.
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
---Raises `deadlock: ...` where nothing can ever send. At a shared channel it waits on: another thread might.
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
---the channel alive. (Stock Lua 5.1 cannot yield in an iterator: in a concurrent job there, call `receive`.)
---
---```lua
---ch:send("a"); ch:send("b"); ch:close()
---for v in ch:iter() do print(v) end
-----> a
-----> b
---```
---@return fun(): any
function Channel:iter() end

---Closes the channel: no more sends. What is buffered can still be received; every waiter is woken, and the value of a
---sender that was waiting is not delivered. Closing twice is no error. Closing a timer's channel before its time
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

---A file descriptor for other event loops: it polls readable exactly while a `receive` would not wait, which is also
---true of a closed channel. Several may poll it; who comes first receives, so use `try_receive`. It is made at the
---first call and belongs to this handle, which closes it when it is collected: keep the channel as long as a loop
---watches the descriptor, and do not close, read or write it.
---
---```lua
---local uv_poll_or_the_like = ch:getfd()
---print(type(uv_poll_or_the_like))  --> number
---```
---@return integer? fd nil where there is none: not on this system, or the process has too many open.
---@return string? reason The system's words.
function Channel:getfd() end

---Whether a `receive` would not wait. luasocket asks for it: `socket.select{ ch }` works.
---
---```lua
---print(ch:dirty())  --> false
---ch:send("x")
---print(ch:dirty())  --> true
---```
---@return boolean
function Channel:dirty() end

---The same as `getfd`. cqueues asks for it: `cqueues.poll(ch)` works.
---
---```lua
---print(ch:pollfd() == ch:getfd())  --> true
---```
---@return integer? fd
---@return string? reason
function Channel:pollfd() end

---What to poll the descriptor for: `"r"`, readable. cqueues asks for it.
---
---```lua
---print(ch:events())  --> r
---```
---@return "r"
function Channel:events() end

---How long to poll at most: nil, without a limit. cqueues asks for it. (For a limit on a wait see `receive`.)
---
---```lua
---print(ch:timeout())  --> nil
---```
---@return nil
function Channel:timeout() end

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
---
---local fetch = queue.new{ concurrency = 10 }
---for i = 1, 3 do
---  fetch:push(function() queue.sleep(10 - i); print("page " .. i) end)
---end
---fetch:run()
-----> page 3
-----> page 2
-----> page 1
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

---Waits for the first of several channels that is ready, and does that case and no other: receives from a channel, or
---sends where the case is `{ channel, value }`. Among cases that are ready the choice is fair. The same channel may
---appear twice.
---
---Raises `send on closed channel` where a send case is at a closed channel, even if others are ready, and when it is
---closed during the wait; `bad argument #1 to 'select' (case 2: channel expected, got nil)` and the like; and
---`deadlock: select can never complete` where no case can ever be ready.
---
---```lua
---local out = queue.channel(1)
---print(queue.select{ ch, { out, "mine" } })  --> 2  true
---ch:send("yours")
---print(queue.select{ ch, { out, "more" } })  --> 1  yours  true
---print(queue.select({ ch, false }, 5))  --> nil  timeout
---ch:close()
---print(queue.select{ ch })  --> 1  nil  false
---```
---@param cases queue.Case[] Read at the call; changing it later changes nothing.
---@param timeout_ms? number Longest wait in milliseconds. 0 never waits; absent: no limit.
---@return integer? index Which case it was, or nil where none was ready in time.
---@return any value What was received; `true` for a send; `"timeout"` where none was ready in time.
---@return boolean? ok For a receive: false where the channel is closed and drained.
function queue.select(cases, timeout_ms) end

---Opens the channel of that name, or makes it. Every Lua state of the process that asks for the name gets the same
---channel: use it between OS threads that run a state each. It works as any channel, but
---
---- values are copied: booleans, numbers, strings, tables of these (references within a value are kept), light
---  userdata, shared channels. Anything else raises, and names the place;
---- a wait at it is never taken for a deadlock.
---
---The name is free again once the channel is closed, drained and no handle on it is left. Until then whoever opens
---it gets the closed channel.
---
---Raises `capacity of 'x' is 3, got 4` where the channel is there and its capacity differs.
---
---```lua
---local lines = queue.shared("lines of the types", 8)
---lines:send{ text = "hello", sizes = { 1, 2.5 } }
---print(queue.shared("lines of the types") == lines, lines:receive().text)  --> true  hello
---lines:close()
---```
---@param name string
---@param capacity? integer An integer >= 0. Absent: that of the channel that is there, or 0 (unbuffered) for a new one.
---@return queue.Channel
function queue.shared(name, capacity) end

---A function for the option `backoff_ms`: delays that grow from retry to retry, `base_ms * factor ^ (attempts - 1)`,
---each swayed by `jitter` at random, so that jobs which failed together do not come back together. Never negative,
---never above `max_ms`, finite for any number of attempts.
---
---Raises for a wrong or unknown option; the function it makes raises where `attempts` is no number.
---
---```lua
---local q = queue.new()
---q:push(function() error("no answer") end, { retries = 3, backoff_ms = queue.backoff{ base_ms = 1, max_ms = 10 } })
---print(q:run())  --> 4
---```
---@param opts? queue.BackoffOptions
---@return fun(attempts: number): number delay Milliseconds before the retry that follows so many attempts.
function queue.backoff(opts) end

---Waits. In a concurrent job the other jobs go on, also for `sleep(0)`; anywhere else it blocks the thread, jobs
---included. `queue.sleep(math.huge)` raises `deadlock: ...`.
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
