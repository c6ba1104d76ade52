-- One job runs several tasks, so that those tasks' own jobs have nothing to do any more.
create or replace function private.remove_spent_jobs(lane text) returns void as $$
begin
  perform graphile_worker.complete_jobs(array(
    select job.id from graphile_worker.jobs as job
    join private.tasks on tasks.id::text = job.key
    where job.task_identifier = 'perform_' || remove_spent_jobs.lane and job.locked_at is null and tasks.finished_at is not null
    order by job.id limit 5000
  ));
end;
$$ language plpgsql set search_path = '';
comment on function private.remove_spent_jobs is 'Removes jobs of a lane whose task has ended; called by the service as the owner.';
