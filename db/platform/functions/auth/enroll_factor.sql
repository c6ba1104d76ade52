-- The documented route knows one authenticator app. Starting again replaces the secrets that no app has confirmed.
create or replace function auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(enroll_factor.user_id);
begin
  if v_account.user_id is null then
    raise exception 'There is no account to protect' using errcode = 'NTFND';
  end if;
  delete from auth.mfa_factors as pending
    where pending.user_id = v_account.user_id and pending.factor_type = 'totp' and pending.state = 'pending';
  if exists (
    select from auth.mfa_factors as factor where factor.user_id = v_account.user_id and factor.factor_type = 'totp'
  ) then
    raise exception 'An authenticator app is enabled already'
      using errcode = 'TAKEN', hint = 'Disable it with one of its codes before you enrol another one.';
  end if;
  insert into auth.mfa_factors (user_id, factor_type, secret) values (v_account.user_id, 'totp', enroll_factor.secret);
  perform auth.log_event('factor.enrolled', v_account.user_id, client_info);
  return v_account.username;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enroll_factor is
  'not enrolled or pending -> pending. Returns the user name that the app displays.';
