from django.urls import path

from .alipay import AlipayCallback
from .stripe import StripeCallback
from .wechat import WeChatCallback

urlpatterns = [
    path(f"payments/callbacks/{view.sender}", view.as_view(), name=f"payment-callback-{view.sender}")
    for view in (AlipayCallback, StripeCallback, WeChatCallback)
]
