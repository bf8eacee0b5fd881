-- A game loop that never stutters: each frame gives the queue a slice of its time, and no more.
-- What is urgent has priority, what is late is dropped, and what repeats has a beat of its own.

local queue = require("queue")

local FRAME_MS, JOBS_MS = 10, 4

local skipped, explored, enemies = 0, 0, 0
local q = queue.new{
  on_error = function(_, info)
    if info.expired then skipped = skipped + 1 end
  end,
}

-- Work in pieces: hundreds of small jobs, each far shorter than a frame.
for _ = 1, 200 do
  q:push(function()
    local t = queue.now()
    while queue.now() - t < 0.2 do end      -- 0.2 ms of path finding
    explored = explored + 1
  end)
end

-- A wave of enemies every 25 ms, ahead of all that.
q:every(25, function() enemies = enemies + 3 end, { delay_ms = 0, priority = 10 })

-- A spark that nobody would see any more 2 ms from now; it stands behind the path finding.
for _ = 1, 5 do q:push(function() end, { priority = -1, timeout_ms = 2 }) end

local function update_and_draw() end

local frames, longest = 0, 0
while explored < 200 do
  local start = queue.now()
  update_and_draw()

  -- One job at a time, until the slice is used up or nothing is due.
  while queue.now() - start < JOBS_MS and q:next_due() == 0 do q:poll(1) end

  local spent = queue.now() - start
  longest = math.max(longest, spent)
  frames = frames + 1
  queue.sleep(FRAME_MS - spent)
end

print(string.format("%d path steps over several frames: %s", explored, tostring(frames > 5)))
print("waves came in between: " .. tostring(enemies >= 6))
while q:next_due() == 0 do q:poll(1) end    -- the sparks' turn has come at last, too late
print(skipped .. " sparks were dropped")
q:stop()
print(tostring(q))
