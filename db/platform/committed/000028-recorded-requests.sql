--! Previous: sha1:03e8984152db824cf2af062d8a9cc390dfb1d1f8
--! Hash: sha1:3cc4f13b6f7d582b53e0da451e38ac740f433451
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
comment on column content_service.recorded_requests.shape is 'The interface, the role and the names in the request, as the service describes them; or the interface and others: all requests that have no row.';
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

-- Under a lock, so that processes that report the same shapes do not deadlock. The requests of the shapes beyond the bound are added to the others of their interface.
create function content_service.record_requests(shapes jsonb[], counts bigint[]) returns void as $$
declare
  v_rare bytea[];
begin
  lock table content_service.recorded_requests in share row exclusive mode;
  with reported as (
    select sha256(convert_to(each.shape::text, 'UTF8')) as id, each.shape, sum(each.count)::bigint as requests
    from unnest(shapes, counts) as each (shape, count) group by each.shape
  ), stored as (
    insert into content_service.recorded_requests (id, shape) select reported.id, reported.shape from reported
    on conflict on constraint recorded_requests_pkey do update set seen_at = now()
  )
  insert into content_service.recorded_request_counts as counted (request_id, period, requests)
  select reported.id, date_bin('5 minutes', now(), 'epoch'), reported.requests from reported
  on conflict on constraint recorded_request_counts_pkey do update set requests = counted.requests + excluded.requests;

  delete from content_service.recorded_request_counts where period <= now() - interval '65 minutes';
  delete from content_service.recorded_requests where seen_at <= now() - interval '1 hour';

  v_rare := array(
    select recorded.id from content_service.recorded_requests as recorded
    left join content_service.recorded_request_counts as counted on counted.request_id = recorded.id
    where not recorded.shape ? 'others' group by recorded.id
    order by coalesce(sum(counted.requests), 0) desc, recorded.seen_at desc, recorded.id
    offset content_service.bound('rows of content_service.recorded_requests')
  );
  if v_rare = '{}' then
    return;
  end if;
  with rare as (
    select jsonb_build_object('interface', recorded.shape -> 'interface', 'others', true) as shape, counted.period, sum(counted.requests)::bigint as requests
    from content_service.recorded_requests as recorded
    join content_service.recorded_request_counts as counted on counted.request_id = recorded.id
    where recorded.id = any (v_rare) group by recorded.shape -> 'interface', counted.period
  ), stored as (
    insert into content_service.recorded_requests (id, shape)
    select distinct sha256(convert_to(rare.shape::text, 'UTF8')), rare.shape from rare
    on conflict on constraint recorded_requests_pkey do update set seen_at = now()
  )
  insert into content_service.recorded_request_counts as counted (request_id, period, requests)
  select sha256(convert_to(rare.shape::text, 'UTF8')), rare.period, rare.requests from rare
  on conflict on constraint recorded_request_counts_pkey do update set requests = counted.requests + excluded.requests;
  delete from content_service.recorded_requests where id = any (v_rare);
end;
$$ language plpgsql set search_path = '';
comment on function content_service.record_requests is 'Adds the requests counted by a process; called by the service as the owner.';
