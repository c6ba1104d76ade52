create or replace function auth.unlink_provider(user_id bigint, provider text, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(unlink_provider.user_id);
begin
  if v_account.password_hash is null and not exists (
    select from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = unlink_provider.user_id and providers.name <> unlink_provider.provider and providers.enabled
  ) then
    raise exception 'This is your only way to sign in' using errcode = 'WRONG', hint = 'Set a password first.';
  end if;
  delete from auth.identities using auth.providers
    where identities.user_id = unlink_provider.user_id and identities.issuer = providers.issuer
      and providers.name = unlink_provider.provider;
  if not found then
    return false;
  end if;
  -- A link that is in progress would be completed after this.
  delete from auth.federation_states as state
    where state.user_id = unlink_provider.user_id and state.provider = unlink_provider.provider;
  perform auth.log_event(
    'identity.unlinked', unlink_provider.user_id, client_info, jsonb_build_object('provider', unlink_provider.provider)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.unlink_provider is
  'Removes the identities of a user at that provider, unless the user could not sign in then. False: there are none.';
