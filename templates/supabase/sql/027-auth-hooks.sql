-- The hook of Supabase Auth that may refuse an account. The import of a project creates the trigger where config.toml names the function;
-- rows of seeds, which name their instance, do not call it.
create function supabase_auth.tg_users__call_hook() returns trigger language plpgsql security definer set search_path = '' as $$
declare
  v_provider text := case when NEW.phone is not null and NEW.email is null then 'phone' else 'email' end;
  v_error jsonb;
begin
  execute format('select %I.%I($1) -> ''error''', TG_ARGV[0], TG_ARGV[1]) into v_error using jsonb_build_object(
    'metadata', jsonb_build_object('uuid', gen_random_uuid(), 'time', now(), 'name', 'before-user-created'),
    'user', jsonb_build_object(
      'id', NEW.id, 'aud', 'authenticated', 'role', 'authenticated', 'email', coalesce(NEW.email, NEW.verified_email, ''), 'phone', coalesce(NEW.phone, ''),
      'app_metadata', jsonb_build_object('provider', v_provider, 'providers', jsonb_build_array(v_provider)) || coalesce(NEW.raw_app_meta_data, '{}'),
      'user_metadata', coalesce(NEW.raw_user_meta_data, '{}'), 'identities', '[]'::jsonb, 'is_anonymous', NEW.is_anonymous,
      'created_at', NEW.created_at, 'updated_at', NEW.created_at
    )
  );
  if jsonb_typeof(v_error) = 'object' then
    raise exception using
      errcode = 'PT' || coalesce(substring(v_error ->> 'http_code' from '^[45]\d\d$'), '400'),
      message = coalesce(nullif(v_error ->> 'message', ''), 'The account was refused.');
  end if;
  return NEW;
end;
$$;
