export { countTasks, hasTasks, type JobLane, JobRunner, readTaskActivity, startJobRunner } from "./job-runner.ts";
export { hasSchedules, openSchedules, readScheduleActivity, Schedules, type SchedulesState } from "./schedules.ts";
