--! Previous: sha1:07e5bd82f97ea85086b47b6be938fef8f7153656
--! Hash: sha1:e91714c70709fc422d2e07b7ca1ebe7c55d9095c
--! Message: counts of kept responses

-- A request with an Idempotency-Key counted all responses of its caller, twice: it became slower with each key.
alter table private.kept_answers add if not exists number bigint generated always as identity;
comment on column private.kept_answers.number is 'The order in which they were stored.';
drop index if exists private.kept_answers_of_caller;
create index kept_answers_of_caller on private.kept_answers (caller_key text_pattern_ops, number) include (bytes);

create table if not exists private.kept_answer_counts (
  caller_key text primary key,
  keys       bigint not null,
  bytes      bigint not null,
  number     bigint not null,
  counted_at timestamptz not null
);
alter table private.kept_answer_counts enable row level security;
comment on table private.kept_answer_counts is 'How many responses were kept for callers with many of them, when they were last counted.';
comment on column private.kept_answer_counts.caller_key is 'The user, API key or address that shares a quota.';
comment on column private.kept_answer_counts.keys is 'The number of responses.';
comment on column private.kept_answer_counts.bytes is 'The size of the responses.';
comment on column private.kept_answer_counts.number is 'The number of the last response that was counted.';
comment on column private.kept_answer_counts.counted_at is 'When they were counted.';

--! Included private/responses_of_caller.sql
-- Each request with a key asks this, so the caller's responses are not counted each time: those up to the last count are remembered.
create or replace function private.responses_of_caller(caller_key text, out keys bigint, out bytes bigint, out uncounted bigint) as $$
declare
  v_counted private.kept_answer_counts;
begin
  select counts.* into v_counted from private.kept_answer_counts as counts
    where counts.caller_key = responses_of_caller.caller_key;
  select count(*), coalesce(sum(kept.bytes), 0) into uncounted, bytes from private.kept_answers as kept
    where kept.caller_key = responses_of_caller.caller_key and kept.number > coalesce(v_counted.number, 0);
  keys := uncounted + coalesce(v_counted.keys, 0);
  bytes := bytes + coalesce(v_counted.bytes, 0);
end;
$$ language plpgsql stable set search_path = '';
comment on function private.responses_of_caller is
  'How many responses are kept for the caller, and their bytes; uncounted is how many were stored since the last count.';
--! EndIncluded private/responses_of_caller.sql
--! Included private/count_responses.sql
create or replace function private.count_responses(caller_key text) returns void
language sql
begin atomic
  insert into private.kept_answer_counts (caller_key, keys, bytes, number, counted_at)
    select count_responses.caller_key, count(*), coalesce(sum(kept.bytes), 0), coalesce(max(kept.number), 0), clock_timestamp()
      from private.kept_answers as kept where kept.caller_key = count_responses.caller_key
    on conflict (caller_key) do update
      set keys = excluded.keys, bytes = excluded.bytes, number = excluded.number, counted_at = excluded.counted_at;
end;
comment on function private.count_responses is 'Counts the responses that are kept for the caller, and remembers the result.';
--! EndIncluded private/count_responses.sql
--! Included private/claim_response.sql
-- A stored response is returned without claiming the id, so concurrent retries do not wait for one another. Otherwise one transaction at
-- a time has the id; a second one is told at once instead of waiting with a connection. After a rollback the id is free.
-- A caller beyond the bounds is refused before the change is made. Roles that bypass policies are servers of the operator.
create or replace function private.claim_response(
  place text, caller_key text default '', role text default null, out is_claimed boolean, out answer text
) as $$
declare
  v_id bytea := decode(place, 'hex');
  v_is_anonymous boolean := caller_key like 'address %';
  v_bound bigint;
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A separate statement after the lock was taken: it sees what the previous transaction committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
  if is_claimed and answer is null and not exists (
    select from pg_roles where rolname = claim_response.role and rolbypassrls
  ) then
    v_bound := private.bound(
      case when v_is_anonymous then 'idempotency keys of an anonymous caller' else 'idempotency keys of a caller' end
    );
    if (select own.keys >= v_bound from private.responses_of_caller(claim_response.caller_key) as own) or v_is_anonymous and exists (
      select from private.bounds where name = 'idempotency keys of all anonymous callers' and used >= bound
    ) then
      raise exception 'Too many Idempotency-Keys' using errcode = 'TOMNY', detail = 'Nothing was changed.',
        hint = 'Each key is kept for a day. Send the request without a key, or later.';
    end if;
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.claim_response to authenticator;
comment on function private.claim_response is
  'Returns the stored response; without one claims the id until the end of the transaction, unless another transaction has it.';
--! EndIncluded private/claim_response.sql
--! Included private/store_response.sql
-- Each call deletes a few expired responses; private.maintain_responses deletes the rest. The brief answer says that the change was made and with
-- which status; it is stored where the whole one would exceed a quota.
create or replace function private.store_response(
  place text, answer text, seconds integer, caller_key text default '', role text default null, brief_answer text default null
) returns void as $$
declare
  v_id bytea := decode(place, 'hex');
  v_bytes bigint := octet_length(answer) / 4 * 3;
  v_own record := private.responses_of_caller(store_response.caller_key);
  v_is_brief boolean := brief_answer is not null and not exists (
    select from pg_roles where rolname = store_response.role and rolbypassrls
  ) and (
    v_bytes + v_own.bytes > private.bound('bytes of kept responses of a caller')
    or caller_key like 'address %' and exists (
      select from private.bounds where name = 'bytes of kept responses of all anonymous callers' and used >= bound
    )
  );
  v_answer bytea := decode(case when v_is_brief then brief_answer else answer end, 'base64');
begin
  delete from private.kept_answers where id = v_id and expires_at <= now();
  insert into private.kept_answers (id, sealed_answer, expires_at, caller_key, bytes) values (
    v_id, v_answer, clock_timestamp() + make_interval(secs => seconds), store_response.caller_key, octet_length(v_answer)
  );
  -- Under stricter isolation, rows deleted by another transaction would fail this one (40001).
  if current_setting('transaction_isolation') = 'read committed' then
    delete from private.kept_answers where id in (
      select id from private.kept_answers where expires_at <= now()
      order by expires_at limit 10 for update skip locked
    );
    -- One of several transactions counts; the others do not wait for it.
    if v_own.uncounted >= 256 and pg_try_advisory_xact_lock(hashtextextended(store_response.caller_key, 256)) then
      perform private.count_responses(store_response.caller_key);
    end if;
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.store_response to authenticator;
comment on function private.store_response is 'Stores a response at the id that this transaction has claimed.';
--! EndIncluded private/store_response.sql
--! Included private/maintain_responses.sql
-- Counts what all anonymous callers have: each request would take too long for that, and those that run at the same time would wait for one
-- another. Between two counts more may be kept than the bound, as much as callers send in that time.
create or replace function private.maintain_responses() returns void as $$
declare
  v_count bigint;
  v_bytes bigint;
begin
  delete from private.kept_answers where id in (
    select id from private.kept_answers where expires_at <= now() order by expires_at limit 1000 for update skip locked
  );
  -- What has expired makes room.
  perform private.count_responses(counts.caller_key) from (
    select caller_key from private.kept_answer_counts where counted_at < clock_timestamp() - interval '1 minute'
    order by counted_at limit 20 for update skip locked
  ) as counts;
  delete from private.kept_answer_counts where keys = 0;
  -- Of several processes one counts.
  perform from private.bounds
    where name = 'idempotency keys of all anonymous callers' and used_at < clock_timestamp() - interval '5 seconds'
    for update skip locked;
  if not found then
    return;
  end if;
  select count(*), coalesce(sum(kept.bytes), 0) into v_count, v_bytes
    from private.kept_answers as kept where kept.caller_key like 'address %';
  update private.bounds
    set used_at = clock_timestamp(),
      used = case name when 'idempotency keys of all anonymous callers' then v_count else v_bytes end
    where name in ('idempotency keys of all anonymous callers', 'bytes of kept responses of all anonymous callers');
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_responses is
  'Deletes expired responses, and counts those of anonymous callers; called by the service as the owner.';
--! EndIncluded private/maintain_responses.sql
