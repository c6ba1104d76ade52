--! Previous: sha1:4e77570df769df8f10695cd89a7a70ec48bfa8cc
--! Hash: sha1:c7920337fd71cd7e86eab190b0c2ca70b57c5b59

-- How much callers may ask for and keep. Operators change the numbers.
create table content_service.bounds (
  name    text primary key,
  bound   bigint not null check (bound >= 0),
  used    bigint not null default 0,
  used_at timestamptz not null default '-infinity'
);
alter table content_service.bounds enable row level security;
comment on table content_service.bounds is 'How much callers may make the tables of the service grow. Change a number by an update; it applies at once.';
comment on column content_service.bounds.name is 'What is bounded.';
comment on column content_service.bounds.bound is 'The number of rows or bytes.';
comment on column content_service.bounds.used is 'How much there was when it was last counted; 0 where each request counts.';
comment on column content_service.bounds.used_at is 'When it was last counted.';

insert into content_service.bounds (name, bound) values
  ('tasks of a caller', 1000), ('tasks of an anonymous caller', 100), ('tasks of all anonymous callers', 10000),
  ('running tasks of a caller', 3), ('running tasks of an anonymous caller', 1),
  ('kept tasks of a caller', 10000), ('kept tasks of an anonymous caller', 1000), ('bytes of tasks of a caller', 67108864),
  -- A key without a response takes about 200 bytes for a day.
  ('idempotency keys of a caller', 50000), ('idempotency keys of an anonymous caller', 20000),
  ('idempotency keys of all anonymous callers', 400000),
  ('bytes of kept responses of a caller', 16777216), ('bytes of kept responses of all anonymous callers', 268435456),
  ('rows of auth.audit_log', 10000000), ('days of auth.audit_log', 400), ('rows of auth.flow_states', 200000),
  ('rows of auth.federation_states', 200000), ('rows of auth.mfa_challenges', 200000), ('rows of auth.login_throttle', 1000000),
  ('rows of content_service.rate_limits', 1000000),
  ('dead deliveries of a webhook', 100000), ('refresh tokens of a session', 1000), ('token sessions of a user', 1000);

create function content_service.bound(name text) returns bigint
language sql stable parallel safe
return (select bounds.bound from content_service.bounds where bounds.name = bound.name);
comment on function content_service.bound is 'How much of something may be kept; changed by an update of content_service.bounds.';

-- Requests of each caller in the current window, which begins with the first request and ends at expire (milliseconds since 1970). All processes count here. The
-- columns are those of rate-limiter-flexible, which keeps the stricter limits in the same table. Unlogged: a crash loses one minute of counts.
create unlogged table content_service.rate_limits (
  key    text primary key,
  points integer not null,
  expire bigint
);
create index on content_service.rate_limits (expire);
alter table content_service.rate_limits enable row level security;
comment on table content_service.rate_limits is 'Requests of each caller in the current window.';
comment on column content_service.rate_limits.key is 'What is limited, and the user, key or address that is counted.';
comment on column content_service.rate_limits.points is 'The count.';
comment on column content_service.rate_limits.expire is 'When the window ends, in milliseconds since 1970.';

-- In the order of the keys, so that processes that count the same callers do not deadlock.
create function content_service.count_requests(callers text[], counts integer[], seconds integer)
returns table (key text, points integer, milliseconds double precision) as $$
declare
  v_now bigint := extract(epoch from clock_timestamp()) * 1000;
begin
  delete from content_service.rate_limits where rate_limits.key in (
    select expired.key from content_service.rate_limits as expired where expired.expire <= v_now and expired.key <> all (callers)
    order by expired.expire limit 100 for update skip locked
  );
  return query
    insert into content_service.rate_limits as counted (key, points, expire)
    select told.caller, told.count, v_now + seconds * 1000
    from unnest(callers, counts) as told (caller, count)
    order by told.caller
    on conflict on constraint rate_limits_pkey do update set
      points = case when counted.expire <= v_now then 0 else counted.points end + excluded.points,
      expire = case when counted.expire <= v_now then excluded.expire else counted.expire end
    returning counted.key, counted.points, (counted.expire - v_now)::double precision;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.count_requests is 'Adds the requests counted by a process and returns the totals; called by the service as the owner.';

-- Functions that add such a row delete a few expired ones; this deletes the rest, and the oldest rows beyond a bound, so that a table stays bounded
-- whoever adds how many rows between two calls. At most every minute, by one process. Expired rows in portions, so that it is never long.
create function content_service.trim_tables() returns void as $$
declare
  v_table record;
begin
  perform from content_service.bounds
    where name = 'rows of auth.audit_log' and used_at < clock_timestamp() - interval '50 seconds' for update skip locked;
  if not found then
    return;
  end if;
  update content_service.bounds set used_at = clock_timestamp() where name = 'rows of auth.audit_log';

  for v_table in
    select * from (values
      ('auth.flow_states', 'expires_at', 'expires_at < now()'),
      ('auth.federation_states', 'expires_at', 'expires_at < now()'),
      ('auth.federation_logins', 'expires_at', 'expires_at < now()'),
      ('auth.federation_codes', 'expires_at', 'expires_at < now()'),
      ('auth.federation_replays', 'expires_at', 'expires_at < now()'),
      ('auth.mail_tokens', 'expires_at', 'expires_at < now()'),
      ('auth.mfa_challenges', 'expires_at', 'expires_at < now() - interval ''10 minutes'''),
      ('auth.refresh_tokens', 'expires_at', 'expires_at < now()'),
      ('auth.sessions', 'expires_at', 'least(idle_expires_at, expires_at) < now()'),
      ('auth.login_throttle', 'window_started_at', 'window_started_at < now() - interval ''15 minutes'''),
      ('auth.deleted_accounts', 'deleted_at', 'deleted_at < now() - interval ''1 day'''),
      ('content_service.rate_limits', 'expire', 'expire < extract(epoch from clock_timestamp()) * 1000'),
      -- Its times have no index, but the order of its ids.
      (
        'auth.audit_log', 'id', 'id in (select id from auth.audit_log order by id limit 100000)
          and at < now() - make_interval(days => content_service.bound(''days of auth.audit_log'')::integer)'
      )
    ) as kept (name, age, is_over)
  loop
    execute format(
      'delete from %1$s where ctid in (select ctid from %1$s where %2$s order by %3$s limit 100000 for update skip locked)',
      v_table.name, v_table.is_over, v_table.age
    );
    if content_service.bound('rows of ' || v_table.name) is not null then
      execute format(
        'delete from %1$s where ctid in (
          select ctid from %1$s order by %2$s limit greatest(0, (%3$s) - %4$s) for update skip locked
        )',
        v_table.name, v_table.age,
        -- Of the table whose rows are deleted in the order of their numbers only, nothing has to be counted.
        format(case v_table.age when 'id' then 'select max(id) - min(id) + 1 from %s' else 'select count(*) from %s' end, v_table.name),
        content_service.bound('rows of ' || v_table.name)
      );
    end if;
  end loop;

  delete from content_service.webhook_deliveries where id in (
    select dead.id from api.webhooks
    cross join lateral (
      select recorded_at from content_service.webhook_deliveries
      where webhook_id = webhooks.id and state = 'dead' order by recorded_at desc
      offset content_service.bound('dead deliveries of a webhook') limit 1
    ) as newest
    join content_service.webhook_deliveries as dead
      on dead.webhook_id = webhooks.id and dead.state = 'dead' and dead.recorded_at <= newest.recorded_at
    limit 100000
  );
  -- Only tokens that were exchanged: their repetition is then refused as unknown, and ends no session any more.
  delete from auth.refresh_tokens where token_hash in (
    select token_hash from (
      select token.token_hash, token.rotated_at, row_number() over (partition by token.family_id order by token.issued_at desc) as place
      from auth.refresh_tokens as token
      where token.family_id in (
        select family_id from auth.refresh_tokens group by 1 having count(*) > content_service.bound('refresh tokens of a session')
      )
    ) as placed
    where place > content_service.bound('refresh tokens of a session') and rotated_at is not null limit 100000
  );
  delete from auth.token_sessions where id in (
    select id from (
      select session.id, row_number() over (partition by session.user_id order by session.refreshed_at desc) as place
      from auth.token_sessions as session
      where session.user_id in (
        select user_id from auth.token_sessions group by 1 having count(*) > content_service.bound('token sessions of a user')
      )
    ) as placed
    where place > content_service.bound('token sessions of a user') limit 100000
  );
end;
$$ language plpgsql set search_path = '';
comment on function content_service.trim_tables is 'Deletes what is past its time, and the oldest rows beyond the bounds of tables; called by the service as the owner.';

-- The response to a request with an Idempotency-Key, stored in the transaction that made the change: a retry receives the same
-- response and changes nothing, whichever process it reaches.
--
-- The id is derived from the key and from the caller, and so is the secret that the response is encrypted with. Neither is stored
-- here, so nobody can read the contents, not even from a backup.
create table content_service.kept_answers (
  id            bytea primary key check (octet_length(id) = 32),
  sealed_answer bytea not null,
  expires_at    timestamptz not null,
  caller_key    text not null default '',
  bytes         bigint not null default 0,
  number        bigint not null generated always as identity
);
create index on content_service.kept_answers (expires_at);
create index kept_answers_of_caller on content_service.kept_answers (caller_key text_pattern_ops, number) include (bytes);
-- Encrypted bytes do not compress.
alter table content_service.kept_answers alter sealed_answer set storage external;
alter table content_service.kept_answers enable row level security;
comment on table content_service.kept_answers is 'Responses that are repeated for the same Idempotency-Key until they expire.';
comment on column content_service.kept_answers.id is 'Derived from the key and from the caller.';
comment on column content_service.kept_answers.sealed_answer is 'The response and a digest of its request, encrypted with a secret that only the sender of the key can derive.';
comment on column content_service.kept_answers.caller_key is 'The user, API key or address that shares a quota.';
comment on column content_service.kept_answers.bytes is 'The size of the response.';
comment on column content_service.kept_answers.number is 'The order in which they were stored.';

-- If the responses of the caller were counted for each request with a key, it would become slower with each key.
create table content_service.kept_answer_counts (
  caller_key text primary key,
  keys       bigint not null,
  bytes      bigint not null,
  number     bigint not null,
  counted_at timestamptz not null
);
alter table content_service.kept_answer_counts enable row level security;
comment on table content_service.kept_answer_counts is 'How many responses were kept for callers with many of them, when they were last counted.';
comment on column content_service.kept_answer_counts.caller_key is 'The user, API key or address that shares a quota.';
comment on column content_service.kept_answer_counts.keys is 'The number of responses.';
comment on column content_service.kept_answer_counts.bytes is 'The size of the responses.';
comment on column content_service.kept_answer_counts.number is 'The number of the last response that was counted.';
comment on column content_service.kept_answer_counts.counted_at is 'When they were counted.';

-- Each request with a key asks this, so the caller's responses are not counted each time: those up to the last count are remembered.
create function content_service.responses_of_caller(caller_key text, out keys bigint, out bytes bigint, out uncounted bigint) as $$
declare
  v_counted content_service.kept_answer_counts;
begin
  select counts.* into v_counted from content_service.kept_answer_counts as counts
    where counts.caller_key = responses_of_caller.caller_key;
  select count(*), coalesce(sum(kept.bytes), 0) into uncounted, bytes from content_service.kept_answers as kept
    where kept.caller_key = responses_of_caller.caller_key and kept.number > coalesce(v_counted.number, 0);
  keys := uncounted + coalesce(v_counted.keys, 0);
  bytes := bytes + coalesce(v_counted.bytes, 0);
end;
$$ language plpgsql stable set search_path = '';
comment on function content_service.responses_of_caller is 'How many responses are kept for the caller, and their bytes; uncounted is how many were stored since the last count.';

create function content_service.count_responses(caller_key text) returns void
language sql
begin atomic
  insert into content_service.kept_answer_counts (caller_key, keys, bytes, number, counted_at)
    select count_responses.caller_key, count(*), coalesce(sum(kept.bytes), 0), coalesce(max(kept.number), 0), clock_timestamp()
      from content_service.kept_answers as kept where kept.caller_key = count_responses.caller_key
    on conflict (caller_key) do update
      set keys = excluded.keys, bytes = excluded.bytes, number = excluded.number, counted_at = excluded.counted_at;
end;
comment on function content_service.count_responses is 'Counts the responses that are kept for the caller, and remembers the result.';

-- Granted to the login only: the service leaves the caller's role before it calls them. A caller who could call them, through
-- any function that is served, could forge responses.

-- A stored response is returned without claiming the id, so concurrent retries do not wait for one another. Otherwise one transaction at
-- a time has the id; a second one is told at once instead of waiting with a connection. After a rollback the id is free.
-- A caller beyond the bounds is refused before the change is made. Roles that bypass policies are servers of the operator.
create function content_service.claim_response(place text, caller_key text default '', role text default null, out is_claimed boolean, out answer text) as $$
declare
  v_id bytea := decode(place, 'hex');
  v_is_anonymous boolean := caller_key like 'address %';
  v_bound bigint;
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from content_service.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A separate statement after the lock was taken: it sees what the previous transaction committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from content_service.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
  if is_claimed and answer is null and not exists (
    select from pg_roles where rolname = claim_response.role and rolbypassrls
  ) then
    v_bound := content_service.bound(
      case when v_is_anonymous then 'idempotency keys of an anonymous caller' else 'idempotency keys of a caller' end
    );
    if (select own.keys >= v_bound from content_service.responses_of_caller(claim_response.caller_key) as own) or v_is_anonymous and exists (
      select from content_service.bounds where name = 'idempotency keys of all anonymous callers' and used >= bound
    ) then
      raise exception 'Too many Idempotency-Keys' using errcode = 'TOMNY', detail = 'Nothing was changed.',
        hint = 'Each key is kept for a day. Send the request without a key, or later.';
    end if;
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function content_service.claim_response to authenticator;
comment on function content_service.claim_response is 'Returns the stored response; without one claims the id until the end of the transaction, unless another transaction has it.';

-- Each call deletes a few expired responses; content_service.maintain_responses deletes the rest. The brief answer says that the change was made and with
-- which status; it is stored where the whole one would exceed a quota.
create function content_service.store_response(
  place text, answer text, seconds integer, caller_key text default '', role text default null, brief_answer text default null
) returns void as $$
declare
  v_id bytea := decode(place, 'hex');
  v_bytes bigint := octet_length(answer) / 4 * 3;
  v_own record := content_service.responses_of_caller(store_response.caller_key);
  v_is_brief boolean := brief_answer is not null and not exists (
    select from pg_roles where rolname = store_response.role and rolbypassrls
  ) and (
    v_bytes + v_own.bytes > content_service.bound('bytes of kept responses of a caller')
    or caller_key like 'address %' and exists (
      select from content_service.bounds where name = 'bytes of kept responses of all anonymous callers' and used >= bound
    )
  );
  v_answer bytea := decode(case when v_is_brief then brief_answer else answer end, 'base64');
begin
  delete from content_service.kept_answers where id = v_id and expires_at <= now();
  insert into content_service.kept_answers (id, sealed_answer, expires_at, caller_key, bytes) values (
    v_id, v_answer, clock_timestamp() + make_interval(secs => seconds), store_response.caller_key, octet_length(v_answer)
  );
  -- Under stricter isolation, rows deleted by another transaction would fail this one (40001).
  if current_setting('transaction_isolation') = 'read committed' then
    delete from content_service.kept_answers where id in (
      select id from content_service.kept_answers where expires_at <= now()
      order by expires_at limit 10 for update skip locked
    );
    -- One of several transactions counts; the others do not wait for it.
    if v_own.uncounted >= 256 and pg_try_advisory_xact_lock(hashtextextended(store_response.caller_key, 256)) then
      perform content_service.count_responses(store_response.caller_key);
    end if;
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function content_service.store_response to authenticator;
comment on function content_service.store_response is 'Stores a response at the id that this transaction has claimed.';

-- Counts what all anonymous callers have: each request would take too long for that, and those that run at the same time would wait for one
-- another. Between two counts more may be kept than the bound, as much as callers send in that time.
create function content_service.maintain_responses() returns void as $$
declare
  v_count bigint;
  v_bytes bigint;
begin
  delete from content_service.kept_answers where id in (
    select id from content_service.kept_answers where expires_at <= now() order by expires_at limit 1000 for update skip locked
  );
  -- What has expired makes room.
  perform content_service.count_responses(counts.caller_key) from (
    select caller_key from content_service.kept_answer_counts where counted_at < clock_timestamp() - interval '1 minute'
    order by counted_at limit 20 for update skip locked
  ) as counts;
  delete from content_service.kept_answer_counts where keys = 0;
  -- Of several processes one counts.
  perform from content_service.bounds
    where name = 'idempotency keys of all anonymous callers' and used_at < clock_timestamp() - interval '5 seconds'
    for update skip locked;
  if not found then
    return;
  end if;
  select count(*), coalesce(sum(kept.bytes), 0) into v_count, v_bytes
    from content_service.kept_answers as kept where kept.caller_key like 'address %';
  update content_service.bounds
    set used_at = clock_timestamp(),
      used = case name when 'idempotency keys of all anonymous callers' then v_count else v_bytes end
    where name in ('idempotency keys of all anonymous callers', 'bytes of kept responses of all anonymous callers');
end;
$$ language plpgsql set search_path = '';
comment on function content_service.maintain_responses is 'Deletes expired responses, and counts those of anonymous callers; called by the service as the owner.';
