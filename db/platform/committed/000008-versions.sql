--! Previous: sha1:d4ecae4b78be2965d8eff829a9a936c726217224
--! Hash: sha1:2eee5f8b64e11e723919450ee7f2103dc51c87d6
--! Message: versions

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
create policy select_all on api.versions for select using (true);
grant select on api.versions to anon, authenticated, service_role;

comment on table api.versions is 'The versions of the conventional interface and how long each is served.';
comment on column api.versions.number is 'The N of /api/vN.';
comment on column api.versions.status is
  'current: recommended. supported: older, still corrected. deprecated: going away. retired: answers 410.';
comment on column api.versions.sunset is 'When it is, or was, retired; null when that is not decided.';
comment on column api.versions.successor is 'The version to move to.';
comment on column api.versions.migration_guide is 'The address of a page that says how to move.';

insert into api.versions (number, status) values (1, 'supported'), (2, 'current');
update api.versions set successor = 2 where number = 1;
