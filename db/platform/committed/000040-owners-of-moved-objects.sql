--! Previous: sha1:82de0d16372a69c45824563578b2dfd737444a58
--! Hash: sha1:9c5e1a4560bdbfc0722771c23d3e90181d091636
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
