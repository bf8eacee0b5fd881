--- The texts of errors that the contract knows. Each list is of Lua patterns for what follows the position.

local Texts = {}

-- The interpreters' own words for a yield that cannot be.
local yields = {
  "^attempt to yield from outside a coroutine$",
  "^attempt to yield across a? ?C%-call boundary$",
  "^attempt to yield across metamethod/C%-call boundary$",
}

local function list(...)
  local all = {}
  for _, part in ipairs{ ... } do
    if type(part) == "string" then
      all[#all + 1] = part
    else
      for _, pattern in ipairs(part) do all[#all + 1] = pattern end
    end
  end
  return all
end

Texts.none = {}
Texts.send = list("^send on closed channel$", "^deadlock: send on channel%(%d+/%d+%) can never complete$", yields)
Texts.try_send = {}
Texts.receive = list("^deadlock: receive on channel%(%d+/%d+%) can never complete$", yields)
Texts.select = list("^send on closed channel$", "^deadlock: select can never complete$", yields)
Texts.sleep = list("^deadlock: sleep can never complete$", yields)
Texts.pump = list("^queue is already running$", "^deadlock: run can never complete$", yields)
Texts.shared = { "^bad argument #2 to 'shared' %(capacity of '.-' is %d+, got %d+%)$" }
Texts.yield = yields

--- What may come out of a piece of a program, with a position or without.
Texts.any = list(Texts.send, Texts.receive, Texts.select, Texts.sleep, Texts.pump, Texts.shared,
  "^cannot resume .-coroutine$", "^the queue of this job has gone$", "^the run that had the job was left$")

--- An object that a finalizer has outlived.
Texts.gone = { "[( ]queue expected, got queue%)$", "[( ]channel expected, got channel%)$",
  "{channel, value} expected, got channel%)$" }

--- A misuse of the function `name`. Where pcall itself calls it, no name is known to the stock library either.
function Texts.misuse(name)
  return {
    "^bad argument #%d+ to '" .. name .. "' %(.+%)$",
    "^bad argument #%d+ to '%?' %(.+%)$",
    "^bad option '.-' to '" .. name .. "' %(.+%)$",
    "^calling '" .. name .. "' on bad self %(.+%)$",
    "^" .. name .. " on a timer's channel$",
    "^" .. name .. " sends on a timer's channel$",
  }
end

function Texts.matches(text, patterns)
  for _, pattern in ipairs(patterns) do
    if text:find(pattern) then return true end
  end
  return false
end

--- A Ctrl-C's text, alone or after a position.
function Texts.is_interrupt(text)
  return type(text) == "string" and (text == "interrupted!" or text:find("^[^\n]*:%d+: interrupted!$") ~= nil)
end

--- The position, which may be absent, and the rest. coroutine.wrap puts one more in front of an error that passes it.
function Texts.split(text)
  local place
  repeat
    local first, rest = text:match("^([^:\n]+:%d+: )(.*)$")
    if first then place, text = first, rest end
  until not first
  return place, text
end

--- Words that no error may have, whatever it is.
function Texts.is_broken(text)
  local low = text:lower()
  return low:find("panick") or low:find("not enough memory") or low:find("borrow") or low:find("stack overflow")
end

return Texts
