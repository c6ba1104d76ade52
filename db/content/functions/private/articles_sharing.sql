-- As the owner, for the same reason as private.articles_containing.
create or replace function private.articles_sharing(tags text[]) returns setof bigint as $$
  select articles.id from public.articles where articles.tags && articles_sharing.tags;
$$ language sql stable parallel safe rows 20 security definer set search_path = '';
grant execute on function private.articles_sharing to anon, authenticated, service_role;
comment on function private.articles_sharing is 'The ids of all articles with one of the tags, whoever may read them.';
