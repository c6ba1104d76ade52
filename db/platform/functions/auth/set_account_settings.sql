-- Who may create accounts is a rule of the database, which every interface obeys, so it has to know the setting. A standby, which has it already,
-- refuses to write.
create or replace function auth.set_account_settings(sign_ups boolean) returns void as $$
begin
  if exists (select from auth.account_settings as settings where settings.sign_ups = set_account_settings.sign_ups) then
    return;
  end if;
  insert into auth.account_settings as settings (sign_ups) values (set_account_settings.sign_ups)
    on conflict (is_only) do update set sign_ups = excluded.sign_ups;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_account_settings is 'Saves AUTH_SIGN_UPS. Each start of the service calls it.';
