--! Previous: sha1:20bd004e0ca946e88c2461fb5b7304895c951ea4
--! Hash: sha1:347bcc48e7287e49bfc4b8806073321e222104c5
--! Message: recorded requests

-- What clients request, without values: migrations are compared and rehearsed with it. Unlogged: a crash loses an hour of counts, and replicas need none.
create unlogged table content_service.recorded_requests (
  id      bytea primary key check (octet_length(id) = 32),
  shape   jsonb not null,
  seen_at timestamptz not null default now()
);
create index on content_service.recorded_requests (seen_at);
alter table content_service.recorded_requests enable row level security;
comment on table content_service.recorded_requests is e'@sample none\n@anonymize empty\nShapes of the requests of the last hour: names of tables, columns and functions, without values.';
comment on column content_service.recorded_requests.id is 'A digest of the shape.';
comment on column content_service.recorded_requests.shape is 'The interface, the role and the names in the request, as the service describes them.';
comment on column content_service.recorded_requests.seen_at is 'When the shape was last reported.';

create unlogged table content_service.recorded_request_counts (
  request_id bytea references content_service.recorded_requests on delete cascade,
  period     timestamptz,
  requests   bigint not null,
  primary key (request_id, period)
);
alter table content_service.recorded_request_counts enable row level security;
comment on table content_service.recorded_request_counts is e'@sample none\n@anonymize empty\nHow many requests of a shape there were in each five minutes.';
comment on column content_service.recorded_request_counts.request_id is 'The shape.';
comment on column content_service.recorded_request_counts.period is 'The start of the five minutes.';
comment on column content_service.recorded_request_counts.requests is 'The number of requests of all gateways.';

insert into content_service.bounds (name, bound) values ('rows of content_service.recorded_requests', 2000);

-- Under a lock, so that processes that report the same shapes do not deadlock.
create function content_service.record_requests(ids bytea[], shapes jsonb[], counts bigint[]) returns void as $$
begin
  lock table content_service.recorded_requests in share row exclusive mode;
  insert into content_service.recorded_requests (id, shape)
  select reported.id, reported.shape from unnest(ids, shapes) as reported (id, shape)
  on conflict on constraint recorded_requests_pkey do update set seen_at = now();

  insert into content_service.recorded_request_counts as counted (request_id, period, requests)
  select reported.id, date_bin('5 minutes', now(), 'epoch'), reported.count from unnest(ids, counts) as reported (id, count)
  on conflict on constraint recorded_request_counts_pkey do update set requests = counted.requests + excluded.requests;

  delete from content_service.recorded_request_counts where period <= now() - interval '65 minutes';
  delete from content_service.recorded_requests where seen_at <= now() - interval '1 hour' or id in (
    select older.id from content_service.recorded_requests as older
    order by older.seen_at desc offset content_service.bound('rows of content_service.recorded_requests')
  );
end;
$$ language plpgsql set search_path = '';
comment on function content_service.record_requests is 'Adds the requests counted by a process; called by the service as the owner.';
