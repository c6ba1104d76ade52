export { type SupabaseJobs, startSupabaseJobs } from "../supabase/supabase-jobs.ts";
export { countTasks, hasTasks, type JobLane, JobRunner, readTaskActivity, startJobRunner } from "./job-runner.ts";
export { hasSchedules, openSchedules, readScheduleActivity, Schedules, type SchedulesState } from "./schedules.ts";
