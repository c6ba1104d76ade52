-- Functions of Supabase's storage that a project's own triggers execute.
create function storage.update_updated_at_column() returns trigger language plpgsql set search_path = '' as $$
begin
  NEW.updated_at := now();
  return NEW;
end;
$$;
comment on function storage.update_updated_at_column is 'Notes when a row was changed, in its column updated_at.';
