create or replace function auth.enable_provider(name text, enabled boolean, client_info auth.client_info) returns boolean as $$
begin
  update auth.providers set enabled = enable_provider.enabled where providers.name = enable_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    case when enable_provider.enabled then 'provider.enabled' else 'provider.disabled' end, null, client_info,
    jsonb_build_object('provider', enable_provider.name)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_provider is
  'Enables or disables sign-in through a provider; users who are signed in stay so. False: no such provider.';
