--! Previous: sha1:91f488a50edfcd048d2f974d10807e013e188cf6
--! Hash: sha1:bf12392c0308ddd7e91d62caba1cd5c81471c8f0
--! Message: audit log

-- What happens to accounts, written in the transaction in which it happens.
create table auth.audit_log (
  id         bigint generated always as identity primary key,
  at         timestamptz not null default now(),
  event      text not null,
  -- No foreign key: the record outlives the user.
  user_id    bigint,
  address    inet,
  request_id text,
  details    jsonb not null default '{}'
);
-- Not valid, here and below: a backup may hold longer texts of before the limit. "restore" accepts them.
alter table auth.audit_log add constraint audit_log_request_id_max_length check (length(request_id) <= 128) not valid;
create index on auth.audit_log using brin (at);
create index on auth.audit_log (user_id, at);
alter table auth.audit_log enable row level security;

comment on table auth.audit_log is 'Sign-ins, failures, and changes of passwords, factors and keys.';
comment on column auth.audit_log.event is 'The event as noun.verb: session.created, password.changed.';
comment on column auth.audit_log.details is 'More about the event; never a secret.';

create type auth.client_info as (address inet, user_agent text, request_id text, actor bigint);
comment on type auth.client_info is 'The client of a request, for the audit log and throttling, and the acting user if it is not the affected one.';

--! Included auth/log_event.sql
create or replace function auth.log_event(
  event text, user_id bigint, client_info auth.client_info, details jsonb default '{}'
) returns void as $$
  insert into auth.audit_log (event, user_id, address, request_id, details)
  values (
    log_event.event, log_event.user_id, (log_event.client_info).address, (log_event.client_info).request_id,
    jsonb_strip_nulls(jsonb_build_object('user_agent', (log_event.client_info).user_agent, 'by', (log_event.client_info).actor))
      || log_event.details
  );
$$ language sql set search_path = '';
comment on function auth.log_event is 'Writes to the audit log in the current transaction.';
--! EndIncluded auth/log_event.sql
