-- Without a setting search_path, which would keep Postgres from inlining it: all names are qualified, and there are no operators.
create or replace function public.articles_summary(article public.articles) returns text as $$
  select coalesce(article.summary, pg_catalog.left(article.content, 200));
$$ language sql stable parallel safe;
grant execute on function public.articles_summary to anon, authenticated, service_role;
comment on function public.articles_summary is
  'The author''s summary, or else the first 200 characters of the content.';
