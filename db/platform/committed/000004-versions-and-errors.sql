--! Previous: sha1:da6e13400593386b7d2c0e52f85d6d62355a3fb7
--! Hash: sha1:4e77570df769df8f10695cd89a7a70ec48bfa8cc

-- Versions of the conventional interface, and errors of fields.

-- Updating a row deprecates or retires a version; response headers and bodies follow. Only the owner writes.
create table api.versions (
  number          integer primary key check (number > 0),
  status          text not null check (status in ('current', 'supported', 'deprecated', 'retired')),
  sunset          timestamptz,
  successor       integer references api.versions check (successor > number),
  migration_guide text
);
create unique index versions_one_current on api.versions (status) where status = 'current';
create index on api.versions (successor);

alter table api.versions enable row level security;
create policy select_all on api.versions for select using (true); grant select on api.versions to anon, authenticated, service_role;
comment on table api.versions is 'The versions of the conventional interface and how long each is served.';
comment on column api.versions.number is 'The N of /api/vN.';
comment on column api.versions.status is 'current: recommended. supported: older, still corrected. deprecated: going away. retired: answers 410.';
comment on column api.versions.sunset is 'When it is, or was, retired; null when that is not decided.';
comment on column api.versions.successor is 'The version to move to.';
comment on column api.versions.migration_guide is 'The address of a page that says how to move.';

insert into api.versions (number, status, successor) values (2, 'current', null), (1, 'supported', 2);

-- A function that returns errors as data, one per field, takes the message from the comment of the violated constraint.
create type public.field_error as (field text, message text);
comment on type public.field_error is 'One field of the input and what is wrong with it.';
comment on column public.field_error.field is e'@notNull\nThe name of the field.';
comment on column public.field_error.message is e'@notNull\nWhat to do about it.';

-- The message is the comment on the constraint; functions that return errors as data look it up here.
create function api.field_error(broken_table regclass, broken_constraint text) returns public.field_error as $$
  select row(attribute.attname, coalesce(obj_description(rule.oid, 'pg_constraint'), rule.conname || ' is violated'))
  from pg_constraint as rule
  left join pg_attribute as attribute on attribute.attrelid = rule.conrelid and attribute.attnum = rule.conkey[1]
  where rule.conrelid = broken_table and rule.conname = broken_constraint;
$$ language sql stable parallel safe set search_path = '';
grant execute on function api.field_error to anon, authenticated, service_role;
comment on function api.field_error is 'A violated constraint as its field and the comment on it.';
