create or replace function auth.remove_provider(name text, client_info auth.client_info) returns boolean as $$
begin
  delete from auth.providers where providers.name = remove_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event('provider.removed', null, client_info, jsonb_build_object('provider', remove_provider.name));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_provider is
  'Removes a provider and its identities; accounts stay. False: no such provider.';
