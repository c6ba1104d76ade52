-- Functions of Supabase's storage that triggers and policies of a project call.
create function storage.update_updated_at_column() returns trigger language plpgsql set search_path = '' as $$
begin
  NEW.updated_at := now();
  return NEW;
end;
$$;
comment on function storage.update_updated_at_column is 'Notes when a row was changed, in its column updated_at.';

create function storage.operation() returns text language sql stable parallel safe
  return nullif(current_setting('storage.operation', true), '');
create function storage.allow_any_operation(expected_operations text[]) returns boolean language sql stable parallel safe
  return coalesce(regexp_replace(storage.operation(), '^storage\.', '') in (
    select regexp_replace(expected, '^storage\.', '') from unnest(expected_operations) as expected where expected <> ''
  ), false);
create function storage.allow_only_operation(expected_operation text) returns boolean language sql stable parallel safe
  return storage.allow_any_operation(array[expected_operation]);
grant execute on function storage.operation, storage.allow_any_operation, storage.allow_only_operation to anon, authenticated, service_role;
comment on function storage.operation is 'What a request to the storage interface does, such as storage.object.upload; null elsewhere.';
comment on function storage.allow_any_operation is 'Whether the request does one of these operations, named with or without storage.';
comment on function storage.allow_only_operation is 'Whether the request does this operation, named with or without storage.';

create function storage.can_insert_object(bucketid text, name text, owner uuid, metadata jsonb) returns void language plpgsql set search_path = '' as $$
begin
  insert into storage.objects (bucket_id, name, owner, metadata) values (bucketid, name, owner, metadata);
  raise sqlstate 'PT200' using message = 'ROLLBACK', detail = 'rollback successful insert';
end;
$$;
grant execute on function storage.can_insert_object to anon, authenticated, service_role;
comment on function storage.can_insert_object is 'Tries whether the caller may upload an object, without keeping it.';
