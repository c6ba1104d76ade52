--! Previous: sha1:f6c6662fb7d071efa9796ba649535c9646c2fddd
--! Hash: sha1:0359573645287967dc054dbc5d824d5c7ea0ae5a
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

create type auth.sender as (address inet, user_agent text, request_id text, actor bigint);
comment on type auth.sender is 'Where a request came from, and who made it when that is not the user it is about.';

--! Included auth/log_event.sql
create or replace function auth.log_event(
  event text, user_id bigint, sender auth.sender, details jsonb default '{}'
) returns void as $$
  insert into auth.audit_log (event, user_id, address, request_id, details)
  values (
    log_event.event, log_event.user_id, (log_event.sender).address, (log_event.sender).request_id,
    jsonb_strip_nulls(jsonb_build_object('user_agent', (log_event.sender).user_agent, 'by', (log_event.sender).actor))
      || log_event.details
  );
$$ language sql set search_path = '';
comment on function auth.log_event is 'Writes to the audit log in the current transaction.';
--! EndIncluded auth/log_event.sql
