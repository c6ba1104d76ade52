create or replace function auth.save_federation_login(login jsonb, browser_hash bytea, seconds integer) returns void as $$
begin
  delete from auth.federation_logins as gone
    where gone.browser_hash = save_federation_login.browser_hash or gone.browser_hash in (
      select logins.browser_hash from auth.federation_logins as logins where expires_at < now()
      order by expires_at limit 10 for update skip locked
    );
  insert into auth.federation_logins (
    browser_hash, provider, user_id, mode, redirect_to, code_challenge, sign_out_hint, expires_at
  )
    select save_federation_login.browser_hash, given.provider, given.user_id, given.mode, given.redirect_to,
      given.code_challenge, given.sign_out_hint, now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_logins, save_federation_login.login) as given;
end;
$$ language plpgsql set search_path = '';
comment on function auth.save_federation_login is
  'Stores a user who has come back from a provider until that browser shows a code. One per browser.';
