--! Previous: sha1:c6c2d5bb4ebbdfa9d73149ffed625b8cbfaff9aa
--! Hash: sha1:8b3fec4a510449af88b3193db49f552dcbe3a683
--! Message: owners of moved objects

-- Both columns name the owner: policies of older Supabase projects compare `owner`, which was still the one before the move.
create or replace function storage.move_object(bucket text, name text, to_bucket text, to_name text, owner text, version text) returns setof storage.objects as $$
  update storage.objects set
    bucket_id = to_bucket, name = to_name, version = move_object.version, owner_id = coalesce(move_object.owner, objects.owner_id),
    owner = case
      when move_object.owner is null then objects.owner
      when move_object.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then cast(move_object.owner as uuid)
    end
  where objects.bucket_id = bucket and objects.name = move_object.name
  returning objects.*;
$$ language sql set search_path = '';
