from django.urls import include, path
from rest_framework.routers import SimpleRouter

from . import rest, views

router = SimpleRouter(trailing_slash=False)
router.register("effects", rest.EffectViewSet, basename="effects")
router.register("enveloped", rest.Enveloped, basename="enveloped")

urlpatterns = [
    path("", include(router.urls)),
    path("rest/bare/<kind>", rest.Answers.as_view()),
    path("rest/guarded/<kind>", rest.GuardedAnswers.as_view()),
    path("rest/limited/<kind>", rest.Limited.as_view()),
    path("plain/bare/<kind>", views.bare_answers),
    path("plain/guarded/<kind>", views.answers),
    path("async/bare/<kind>", views.bare_async_answers),
    path("async/guarded/<kind>", views.async_answers),
    path("rendered/bare", rest.Rendered.as_view()),
    path("rendered/guarded", rest.GuardedRendered.as_view()),
    path("does/bare", rest.Does.as_view()),
    path("does", rest.GuardedDoes.as_view()),
    path("does/<int:number>", rest.GuardedDoes.as_view()),
    path("hooks", rest.Hooks.as_view()),
    path("optional", rest.Optional.as_view()),
    path("remembers", rest.Remembers.as_view()),
    path("guards-put", rest.GuardsPut.as_view()),
    path("scoped", rest.Scoped.as_view()),
    path("uploads/bare", rest.Uploads.as_view()),
    path("uploads", rest.GuardedUploads.as_view()),
    path("read-first", rest.ReadFirst.as_view()),
    path("streams/bare", rest.Streams.as_view()),
    path("streams", rest.GuardedStreams.as_view()),
    path("measures/bare", rest.Measures.as_view()),
    path("measures", rest.GuardedMeasures.as_view()),
    path("counts", rest.Counts.as_view()),
    path("breaks", rest.Breaks.as_view()),
    path("by-request", rest.ByRequest.as_view()),
    path("throttled", rest.Throttled.as_view()),
    path("views/bare", views.bare_does),
    path("views/does", views.does),
    path("views/hooked", views.hooked),
    path("views/uploads", views.uploads),
    path("views/class", views.ClassView.as_view()),
    path("views/async-class", views.AsyncClassView.as_view()),
    path("views/async", views.async_does),
]
