create or replace function public.articles_summary(article public.articles) returns text
language sql stable parallel safe
return coalesce(article.summary, left(article.content, 200));

grant execute on function public.articles_summary to anon, authenticated, service_role;
comment on function public.articles_summary is
  'The author''s summary, or else the first 200 characters of the content.';
