--! Previous: sha1:a212a0fafb4e38b92da0ca68a2fdf3796e89c452
--! Hash: sha1:752f26cca70e9a595185f8591a44698988660de9
--! Message: kept_answers

--! split: 0010-kept_answers.sql
-- What a client was told under an Idempotency-Key, kept in the transaction that made the change: a retry is told the
-- same and changes nothing, whichever gateway it reaches and whatever had become of the first one.
--
-- A place is derived from the key and from who sent it, and so is the secret that the answer is sealed with. Neither is
-- here, so what lies here can be read by nobody, not even in a backup.
create table private.kept_answers (
  id            bytea primary key check (octet_length(id) = 32),
  sealed_answer bytea not null,
  expires_at    timestamptz not null
);
create index on private.kept_answers (expires_at);
-- What is encrypted does not get any smaller.
alter table private.kept_answers alter sealed_answer set storage external;
alter table private.kept_answers enable row level security;

comment on table private.kept_answers is 'Answers to be repeated until they expire.';
comment on column private.kept_answers.id is 'Where it is: derived from the key and from who sent it.';
comment on column private.kept_answers.sealed_answer is
  'The answer and a digest of its request, encrypted with a secret that only the sender of the key can derive.';

-- The two functions are the login's and no role's of a request: the gateway steps out of the caller's role for them.
-- Whoever could call them as a caller, through whatever function is served, could put words into the gateway's mouth.
-- They are the only thing that the login can do by itself.
grant usage on schema private to authenticator;
--! Included private/claim_answer.sql
-- One transaction at a time has a place. Who comes second is told so at once instead of being kept waiting here with a
-- connection in hand; once the first has committed it finds the answer, and once the first was undone the place is free.
create or replace function private.claim_answer(place text, out is_claimed boolean, out answer text) as $$
declare
  v_id bytea := decode(place, 'hex');
begin
  is_claimed := pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A statement of its own, begun after the lock was had: it sees what the transaction before has committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.claim_answer to authenticator;
comment on function private.claim_answer is
  'Claims a place for the rest of the transaction, and tells what is kept there; not claimed while another one has it.';
--! EndIncluded private/claim_answer.sql
--! Included private/keep_answer.sql
-- Each answer that is kept sweeps a few that have expired, so that there is nothing to be swept by the clock.
create or replace function private.keep_answer(place text, answer text, seconds integer) returns void as $$
declare
  v_id bytea := decode(place, 'hex');
begin
  delete from private.kept_answers where id = v_id and expires_at <= now();
  insert into private.kept_answers (id, sealed_answer, expires_at)
    values (v_id, decode(answer, 'base64'), clock_timestamp() + make_interval(secs => seconds));
  -- In a stricter isolation, rows that somebody else has swept would fail the caller's transaction (40001).
  if current_setting('transaction_isolation') = 'read committed' then
    delete from private.kept_answers where id in (
      select id from private.kept_answers where expires_at <= now()
      order by expires_at limit 10 for update skip locked
    );
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.keep_answer to authenticator;
comment on function private.keep_answer is 'Keeps an answer at the place that the transaction has claimed.';
--! EndIncluded private/keep_answer.sql
