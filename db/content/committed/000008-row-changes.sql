--! Previous: sha1:2571f4a49c21e7cbcd8686102d8268e559856553
--! Hash: sha1:3afe47944673d39882c74b233cf1bf8613acf779
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
