-- A row of Supabase's auth.identities, whose provider_id is the subject at the provider.
create or replace function auth.import_identity(identity jsonb) returns text as $$
declare
  v_issuer constant text := (select issuer from auth.providers where name = identity ->> 'provider');
  v_user_id constant bigint := (select user_id from auth.users where users.id = (identity ->> 'user_id')::uuid);
begin
  if identity ->> 'provider' in ('email', 'phone') or v_user_id is null then
    return 'skipped';
  elsif v_issuer is null then
    return 'no_provider';
  end if;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (v_issuer, coalesce(identity ->> 'provider_id', identity -> 'identity_data' ->> 'sub'), v_user_id, true)
    on conflict on constraint identities_pkey do nothing;
  return case when found then 'imported' else 'known' end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.import_identity is
  'Links an account to the subject at a provider of that name: imported, known, skipped, or no_provider.';
