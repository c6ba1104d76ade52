-- Starting again replaces a secret that no app has confirmed.
create or replace function auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(enroll_factor.user_id);
begin
  if v_account.user_id is null then
    raise exception 'There is no account to protect' using errcode = 'NTFND';
  end if;
  insert into auth.mfa_factors as factor (user_id, secret) values (enroll_factor.user_id, enroll_factor.secret)
    on conflict on constraint mfa_factors_pkey do update
      set secret = excluded.secret, last_used_step = null, created_at = now() where factor.state = 'pending';
  if not found then
    raise exception 'An authenticator app is enabled already'
      using errcode = 'TAKEN', hint = 'Disable it with one of its codes before you enrol another one.';
  end if;
  perform auth.log_event('factor.enrolled', enroll_factor.user_id, client_info);
  return v_account.username;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enroll_factor is
  'not enrolled or pending -> pending. Returns the user name that the app displays.';
