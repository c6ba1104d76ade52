-- Runs as the caller, so policies decide; afterwards it finds out why nothing was updated. Null leaves a column unchanged: none of the
-- four is nullable.
create or replace function public.update_article(
  id bigint,
  title text default null,
  content text default null,
  tags text[] default null,
  status public.article_status default null
) returns public.articles as $$
declare
  v_article public.articles;
begin
  -- A caller that bypasses policies (service_role) needs no account.
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to change an article' using errcode = 'LOGIN';
  end if;

  update public.articles as article
    set
      title = coalesce(update_article.title, article.title),
      content = coalesce(update_article.content, article.content),
      tags = coalesce(update_article.tags, article.tags),
      status = coalesce(update_article.status, article.status)
    where article.id = update_article.id
    returning * into v_article;
  if found then
    return v_article;
  end if;

  if exists (select from public.articles as article where article.id = update_article.id) then
    raise exception 'Only its author may change this article' using errcode = 'NOPER';
  end if;
  raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'id';
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.update_article to anon, authenticated, service_role;
comment on function public.update_article is 'Change an article of yours. What is left out stays as it is.';
