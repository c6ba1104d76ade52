--! Previous: sha1:f67789f335e2bb522c0674ba1ed7ae30d88e07b3
--! Hash: sha1:35c7bdaf9a54b85828f72305a2c6799e9eed7cb7
--! Message: row changes

-- The event triggers log_whole_rows and publish_rows have done this for each table, unless the owner may not create event triggers.
alter table public.users replica identity full;
alter table public.articles replica identity full;
alter table public.article_translations replica identity full;
alter table public.comments replica identity full;

do $$
declare
  v_table text;
begin
  foreach v_table in array '{users,articles,article_translations,comments}'::text[] loop
    if not exists (
      select from pg_publication_tables
      where pubname = 'supabase_realtime' and schemaname = 'public' and tablename = v_table
    ) then
      execute format('alter publication supabase_realtime add table public.%I', v_table);
    end if;
  end loop;
exception when insufficient_privilege or undefined_object then
  raise warning 'Without a publication supabase_realtime that is ours, row changes are not streamed: %', sqlerrm;
end $$;
