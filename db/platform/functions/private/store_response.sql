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
