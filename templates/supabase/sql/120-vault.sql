-- Secrets with the functions of Supabase Vault, encrypted with a key that is not in the database: the file vault.key in the data folder of
-- Postgres, or, where the owner may not read files there, the setting app.settings.vault_key (PGRST_APP_SETTINGS_VAULT_KEY).
create schema vault;
grant usage on schema vault to postgres, service_role;
comment on schema vault is 'Secrets, encrypted with a key outside the database.';

create table vault.secrets (
  id          uuid primary key default gen_random_uuid(),
  name        text,
  description text not null default '',
  secret      text not null,
  key_id      uuid,
  nonce       bytea,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now()
);
create unique index secrets_name_idx on vault.secrets (name) where name is not null;
alter table vault.secrets enable row level security;
create policy all_rows on vault.secrets using (true);
comment on table vault.secrets is e'@sample all\n@anonymize empty\nSecrets, encrypted.';

create function vault._key() returns text language plpgsql security definer set search_path = '' as $$
declare
  v_file text := current_setting('data_directory', true) || '/vault.key';
  v_key text := nullif(current_setting('app.settings.vault_key', true), '');
begin
  if v_key is not null then
    return v_key;
  end if;
  if (pg_stat_file(v_file, true)).size is null then
    perform pg_advisory_xact_lock(hashtext('vault.key'));
    if (pg_stat_file(v_file, true)).size is null then
      execute format('copy (select %L) to %L', encode(extensions.gen_random_bytes(32), 'hex'), v_file);
    end if;
  end if;
  return btrim(pg_read_file(v_file), E' \n');
exception when insufficient_privilege then
  raise exception 'There is no key for the secrets of the vault'
    using hint = 'Set PGRST_APP_SETTINGS_VAULT_KEY for the service, and app.settings.vault_key for other connections.';
end;
$$;

create function vault._crypt(secret text, encrypts boolean) returns text
language plpgsql security definer set search_path = '' set bytea_output = 'hex' as $$
begin
  if secret is null then
    return null;
  elsif encrypts then
    return case when starts_with(secret, '\x') and vault._crypt(secret, false) is not null then secret
      else extensions.pgp_sym_encrypt(secret, vault._key(), 'cipher-algo=aes256, s2k-mode=1')::text end;
  elsif secret !~ '^\\x([0-9a-f]{2})+$' then
    return null;
  end if;
  return extensions.pgp_sym_decrypt(secret::bytea, vault._key());
exception when external_routine_invocation_exception then
  return null;
end;
$$;
revoke execute on function vault._key, vault._crypt from public;
comment on function vault._crypt is 'Encrypts or decrypts; null for what was encrypted with another key.';

-- Also for rows that are inserted, as earlier versions of Vault allowed. What is encrypted already, as in a restored database, stays.
create function vault.tg_secrets__encrypt() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if TG_OP = 'INSERT' or NEW.secret is distinct from OLD.secret then
    NEW.secret := vault._crypt(NEW.secret, true);
  end if;
  NEW.updated_at := now();
  return NEW;
end;
$$;
create trigger content_service_encrypt before insert or update of secret on vault.secrets for each row execute function vault.tg_secrets__encrypt();
alter table vault.secrets enable always trigger content_service_encrypt;

create view vault.decrypted_secrets as
  select secrets.id, secrets.name, secrets.description, secrets.secret, vault._crypt(secrets.secret, false) as decrypted_secret, secrets.key_id,
    secrets.nonce, secrets.created_at, secrets.updated_at
  from vault.secrets;

create function vault.create_secret(new_secret text, new_name text default null, new_description text default '', new_key_id uuid default null)
returns uuid language sql security definer set search_path = '' as $$
  insert into vault.secrets (secret, name, description, key_id) values ($1, $2, coalesce($3, ''), $4) returning id;
$$;
create function vault.update_secret(
  secret_id uuid, new_secret text default null, new_name text default null, new_description text default null, new_key_id uuid default null
) returns void language sql security definer set search_path = '' as $$
  update vault.secrets set secret = coalesce($2, secret), name = coalesce($3, name), description = coalesce($4, description),
    key_id = coalesce($5, key_id), updated_at = now() where id = $1;
$$;
revoke execute on function vault.create_secret, vault.update_secret from public;
grant execute on function vault.create_secret, vault.update_secret to postgres, service_role;
grant select, delete on vault.secrets, vault.decrypted_secrets to postgres, service_role;
grant execute on function vault._crypt to postgres, service_role;
