--! Previous: sha1:6c8115dbdd5456055a28e27bbb6892ff48896c17
--! Hash: sha1:beb04de73ef0c3fa4f50eb6bfed97ff79ab6a067
--! Message: auth_audit_log

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
create index on auth.audit_log using brin (at);
create index on auth.audit_log (user_id, at);
alter table auth.audit_log enable row level security;

comment on table auth.audit_log is
  'What happened to accounts: sign-ins, failures, changes of passwords, factors and keys.';
comment on column auth.audit_log.event is 'What happened, as noun.verb: session.created, password.changed.';
comment on column auth.audit_log.details is 'More about it; never a secret.';
