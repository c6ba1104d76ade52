-- The sign-ins that proved this factor continue without it. Backup codes end with the last factor.
create or replace function auth.delete_factor(factor auth.mfa_factors, client_info auth.client_info) returns void as $$
begin
  update auth.token_sessions as session set
      aal = 1, factor_id = null,
      amr = (
        select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(session.amr) as entry
        where entry ->> 'method' not in ('totp', 'mfa/webauthn')
      )
    where session.factor_id = factor.id;
  delete from auth.mfa_factors as deleted where deleted.id = factor.id;
  if not auth.has_factor(factor.user_id) then
    delete from auth.mfa_backup_codes as code where code.user_id = factor.user_id;
    update auth.token_sessions as session set requires_factor = false
      where session.user_id = factor.user_id and session.requires_factor;
  end if;
  perform auth.log_event(
    'factor.disabled', factor.user_id, client_info, jsonb_build_object('factor', factor.id, 'type', factor.factor_type)
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_factor is 'Deletes a factor. The caller has locked the account.';
