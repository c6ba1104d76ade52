create or replace function auth.add_provider(provider jsonb, client_info auth.client_info) returns void as $$
begin
  insert into auth.providers (
    name, kind, issuer, client_id, client_secret, title, sign_ups, trusts_email, trusts_factor, settings
  )
    select given.name, given.kind, given.issuer, given.client_id, given.client_secret, given.title,
      coalesce(given.sign_ups, true), coalesce(given.trusts_email, false), coalesce(given.trusts_factor, false),
      coalesce(given.settings, '{}')
    from jsonb_populate_record(null::auth.providers, add_provider.provider) as given;
  perform auth.log_event('provider.added', null, client_info, jsonb_build_object('provider', provider ->> 'name'));
exception
  when unique_violation then
    raise exception 'There is a provider of that name, or of that issuer, already' using errcode = 'TAKEN', detail = 'name';
  when check_violation or not_null_violation then
    raise exception 'This is no provider of that kind: %', sqlerrm
      using errcode = 'WRONG', detail = 'settings', hint = 'See docs/federation.md for what each kind wants.';
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_provider is 'Adds an identity provider from the columns of its row.';
