--[[
The gate of cpsched: jobs submitted while it is closed wait for cpsched to start them.

Copy it beside slurm.conf, and set JobSubmitPlugins=lua there. The daemon of cpsched writes into GATE_FILE until when
(Unix seconds) the gate is closed, and renews it in each cycle. Where the file is missing, unreadable or out of date,
the gate is open, and Slurm schedules new jobs as it always did. So a cpsched that has died stops nobody.

A job that is let in behind the gate begins when the gate opens, unless cpsched says something else of it before.
AdminComment says so, with the user's own --begin. Who may change the begin and the nodes of such a job: root, and the
users in OPERATORS (numbers).
]]
local GATE_FILE = "/run/cpsched/gate"
local OPERATORS = { [0] = true }
local MARK = "cpsched:1"
local DENIED = 2002 -- ESLURM_ACCESS_DENIED: Access/permission denied

-- the second until which the gate is closed; nil: it is open
local function closed_until()
  local file = io.open(GATE_FILE, "r")
  if file == nil then
    return nil
  end
  local line = file:read("*l")
  file:close()
  local second = line and tonumber(line:match("^closed until (%d+)$"))
  return second ~= nil and second > os.time() and second or nil
end

local function is_set(value)
  return value ~= nil and value ~= 0 and value ~= "" and value ~= slurm.NO_VAL and value ~= slurm.NO_VAL64
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  local second = closed_until()
  local has_begin = is_set(job_desc.begin_time)
  if second ~= nil and not (has_begin and job_desc.begin_time > second) then
    local note = MARK
    if has_begin then
      note = note .. string.format(";begin=%d", job_desc.begin_time)
    end
    job_desc.admin_comment = (job_desc.admin_comment or "") .. note .. string.format(";until=%d", second)
    job_desc.begin_time = second
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  local is_steered = (job_rec.admin_comment or ""):find(MARK, 1, true) ~= nil
  if is_steered and not OPERATORS[modify_uid] then
    if is_set(job_desc.begin_time) or job_desc.req_nodes ~= nil then
      slurm.log_user("the start and the nodes of this job are set by cpsched")
      return DENIED
    end
  end
  return slurm.SUCCESS
end

return slurm.SUCCESS
