-- Who may create accounts is a rule of the database, which every interface obeys, so it has to know the setting.
create or replace function auth.set_account_settings(sign_ups boolean) returns void
language sql
begin atomic
  insert into auth.account_settings (sign_ups) values (set_account_settings.sign_ups)
    on conflict (is_only) do update set sign_ups = excluded.sign_ups where account_settings.sign_ups <> excluded.sign_ups;
end;

comment on function auth.set_account_settings is 'Saves AUTH_SIGN_UPS. Each start of the service calls it.';
