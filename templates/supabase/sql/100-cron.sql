-- The functions and tables of pg_cron. The service runs the commands, each minute or each few seconds, as the role that scheduled them.
-- Its errors have the codes of pg_cron too, which are mostly XX000.
create schema cron;
grant usage on schema cron to postgres, dashboard_user;
comment on schema cron is 'Commands that run by the clock, with the functions and tables of pg_cron.';

create sequence cron.jobid_seq;
create sequence cron.runid_seq;
create table cron.job (
  jobid    bigint primary key default nextval('cron.jobid_seq'),
  schedule text not null,
  command  text not null,
  nodename text not null default 'localhost',
  nodeport integer not null default current_setting('port')::integer,
  database text not null default current_database(),
  username text not null default current_user,
  active   boolean not null default true,
  jobname  text,
  constraint jobname_username_uniq unique (jobname, username)
);
create table cron.job_run_details (
  jobid          bigint,
  runid          bigint primary key default nextval('cron.runid_seq'),
  job_pid        integer,
  database       text,
  username       text,
  command        text,
  status         text,
  return_message text,
  start_time     timestamptz,
  end_time       timestamptz
);
create index content_service_job_run_details_jobid_runid_idx on cron.job_run_details (jobid, runid);
alter table cron.job enable row level security;
alter table cron.job_run_details enable row level security;
create policy cron_job_policy on cron.job using (username = current_user) with check (username = current_user);
create policy cron_job_run_details_policy on cron.job_run_details using (username = current_user);
-- The policies bind everybody but the owner of the migrations; only who may use the schema gets here.
grant select, insert, update, delete on cron.job to public;
grant select, delete on cron.job_run_details to public;
grant usage on sequence cron.jobid_seq, cron.runid_seq to public;

-- The times that a gateway has begun, so that no other does.
create table cron.due_times (
  jobid      bigint not null,
  planned_at timestamptz not null,
  constraint content_service_due_times_pkey primary key (jobid, planned_at)
);
alter table cron.due_times enable row level security;
create index content_service_due_times_planned_at_idx on cron.due_times (planned_at);

comment on table cron.job is e'@sample all\n@anonymize empty\nCommands may contain secrets.';
comment on table cron.job_run_details is e'@sample none\n@anonymize empty\nThe runs of the commands.';
comment on table cron.due_times is e'@sample none\n@anonymize empty\nThe times of commands that have begun.';

-- Security definer, because the check of the platform is closed.
create function cron.tg_job__check() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = NEW.username) then
    raise exception 'role "%" does not exist', NEW.username using errcode = 'internal_error';
  end if;
  if NEW.schedule ~ '^\s*@.*[A-Z]' then
    raise exception 'invalid schedule: %', NEW.schedule using errcode = 'invalid_parameter_value';
  end if;
  if NEW.schedule ~* '^\s*([1-9]|[1-5]\d)\s+seconds?\s*$' or lower(btrim(NEW.schedule)) in ('@midnight', '@annually') then
    return NEW;
  end if;
  begin
    -- "$" is the last day of a month; what follows the fifth field is ignored.
    perform content_service.check_cron(regexp_replace(
      regexp_replace(btrim(regexp_replace(NEW.schedule, '\s+', ' ', 'g')), '^(\S+(?: \S+){4}) .*$', '\1'), '^(\S+ \S+) \$ ', '\1 28 '
    ));
  exception when others then
    raise exception 'invalid schedule: %', NEW.schedule using errcode = 'invalid_parameter_value',
      hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
  end;
  return NEW;
end;
$$;
create trigger content_service_check_job before insert or update on cron.job for each row execute function cron.tg_job__check();

create function cron.schedule_in_database(
  job_name text, schedule text, command text, database text, username text default null, active boolean default true
) returns bigint language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
  v_job bigint;
begin
  if num_nulls($1, $2, $3) > 0 then
    raise exception '% can not be NULL', case when $1 is null then 'job_name' when $2 is null then 'schedule' else 'command' end
      using errcode = 'internal_error';
  end if;
  if $4 is not null and not exists (select from pg_catalog.pg_database where datname = $4) then
    raise exception 'database "%" does not exist', $4 using errcode = 'invalid_catalog_name';
  end if;
  insert into cron.job (jobname, schedule, command, database, username, active)
    values ($1, $2, $3, coalesce($4, current_database()), coalesce($5, current_user), $6)
    on conflict on constraint jobname_username_uniq do update
      set schedule = excluded.schedule, command = excluded.command, database = excluded.database, active = excluded.active
    returning jobid into v_job;
  return v_job;
end;
$$;
create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql set search_path = '' as $$
  select cron.schedule_in_database($1, $2, $3, current_database());
$$;
create function cron.schedule(schedule text, command text) returns bigint language sql strict set search_path = '' as $$
  insert into cron.job (schedule, command) values ($1, $2) returning jobid;
$$;
create function cron.unschedule(job_id bigint) returns boolean language plpgsql strict set search_path = '' as $$
begin
  delete from cron.job where jobid = job_id;
  if not found then
    raise exception 'could not find valid entry for job %', job_id using errcode = 'internal_error';
  end if;
  return true;
end;
$$;
create function cron.unschedule(job_name text) returns boolean language plpgsql strict set search_path = '' as $$
begin
  delete from cron.job where jobname = job_name and username = current_user;
  if not found then
    raise exception 'could not find valid entry for job ''%''', job_name using errcode = 'internal_error';
  end if;
  return true;
end;
$$;
create function cron.alter_job(
  job_id bigint, schedule text default null, command text default null, database text default null, username text default null,
  active boolean default null
) returns void language plpgsql set search_path = '' as $$
#variable_conflict use_column
begin
  if job_id is null then
    raise exception 'job_id can not be NULL' using errcode = 'internal_error';
  end if;
  if $4 is not null and not exists (select from pg_catalog.pg_database where datname = $4) then
    raise exception 'database "%" does not exist', $4 using errcode = 'invalid_catalog_name';
  end if;
  update cron.job set schedule = coalesce(alter_job.schedule, schedule), command = coalesce(alter_job.command, command),
      database = coalesce(alter_job.database, database), username = coalesce(alter_job.username, username),
      active = coalesce(alter_job.active, active)
    where jobid = job_id;
  if not found then
    raise exception 'Job % does not exist or you don''t own it', job_id using errcode = 'internal_error';
  end if;
end;
$$;
