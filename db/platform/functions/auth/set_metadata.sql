-- Metadata travels in access tokens, and these in a header, whose length is limited.
create or replace function auth.set_metadata(user_id bigint, user_metadata jsonb, app_metadata jsonb) returns void as $$
declare
  v_account constant auth.users := auth.lock_account(set_metadata.user_id);
  v_user jsonb := auth.merge_metadata(v_account.raw_user_meta_data, set_metadata.user_metadata);
  v_app jsonb := auth.merge_metadata(v_account.raw_app_meta_data, set_metadata.app_metadata);
begin
  if octet_length(v_user::text) > 8192 or octet_length(v_app::text) > 8192 then
    raise exception 'Metadata has at most 8192 bytes' using errcode = 'WRONG', detail = 'data';
  end if;
  update auth.users as account set raw_user_meta_data = v_user, raw_app_meta_data = v_app
    where account.user_id = set_metadata.user_id and (account.raw_user_meta_data, account.raw_app_meta_data) <> (v_user, v_app);
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_metadata is
  'Changes the given keys of the metadata and removes those that are null. Null: none.';
