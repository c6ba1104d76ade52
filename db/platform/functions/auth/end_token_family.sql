-- Access tokens name no family, so all of the user's end: other clients refresh theirs.
create or replace function auth.end_token_family(user_id bigint, family_id uuid, client_info auth.client_info)
returns boolean as $$
begin
  perform auth.lock_account(end_token_family.user_id);
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_token_family.user_id and token.family_id = end_token_family.family_id
      and token.revoked_at is null;
  if not found then
    return false;
  end if;
  perform auth.end_access_tokens(end_token_family.user_id);
  perform auth.log_event('refresh_token.revoked', end_token_family.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_token_family is
  'Ends one sign-in by tokens of that user. False: the user has no such sign-in.';
