-- The columns of the passkey are those of the row; the rest is set here.
create or replace function auth.add_passkey(
  user_id bigint, passkey jsonb, client_info auth.client_info, out outcome text, out added auth.passkeys
) as $$
declare
  v_most constant integer := 10;
  v_account constant auth.users := auth.lock_account(add_passkey.user_id);
  v_row constant auth.passkeys := jsonb_populate_record(null::auth.passkeys, passkey);
begin
  outcome := case
    when v_account.user_id is null then 'no_account'
    when exists (select from auth.passkeys as other where other.credential_id = v_row.credential_id) then 'exists'
    when v_row.factor_id is null and (
      select count(*) from auth.passkeys as other where other.user_id = v_account.user_id and other.factor_id is null
    ) >= v_most then 'too_many'
    else 'added'
  end;
  if outcome <> 'added' then
    return;
  end if;
  insert into auth.passkeys (
    user_id, factor_id, friendly_name, credential_id, public_key, counter, transports, aaguid, is_backup_eligible, is_backed_up
  ) values (
    v_account.user_id, v_row.factor_id, coalesce(v_row.friendly_name, ''), v_row.credential_id, v_row.public_key, v_row.counter,
    v_row.transports, v_row.aaguid, v_row.is_backup_eligible, v_row.is_backed_up
  )
  returning * into added;
  perform auth.log_event('passkey.added', v_account.user_id, client_info, jsonb_build_object('passkey', added.id));
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_passkey is
  'Stores a passkey whose registration the service has verified: added; exists, too_many or no_account.';
