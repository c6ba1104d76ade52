create or replace function public.search(keyword text) returns setof public.articles as $$
  select article.*
  from api.search_articles(keyword) with ordinality as found (id, position)
  join public.articles as article on article.id = found.id
  order by found.position;
$$ language sql stable parallel safe rows 20 set search_path = '';
grant execute on function public.search to anon, authenticated, service_role;
comment on function public.search is
  'Articles with the keyword in title, tags or content, the best match first.';
