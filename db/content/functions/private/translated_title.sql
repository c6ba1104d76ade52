create or replace function private.translated_title(article_id bigint, language text) returns text
language sql stable parallel safe
begin atomic
  select translation.title
  from public.article_translations as translation
  where translation.article_id = translated_title.article_id and translation.language = translated_title.language;
end;

grant execute on function private.translated_title to anon, authenticated, service_role;
comment on function private.translated_title is 'The title in that language; null without a translation.';
