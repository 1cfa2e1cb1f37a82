module @golden attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 1.0>>} {
  func.func @loss(
      %x: tensor<4x6xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<4xi32> {shardc.role = #shardc.label<"y">},
      %p_neg: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_neg", normal(1.0)>},
      %p_abs: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_abs", normal(1.0)>},
      %p_sign: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_sign", normal(1.0)>},
      %p_exp: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_exp", normal(1.0)>},
      %p_expm1: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_expm1", normal(1.0)>},
      %p_log: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_log", normal(1.0)>},
      %p_log1p: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_log1p", normal(1.0)>},
      %p_sqrt: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_sqrt", normal(1.0)>},
      %p_rsqrt: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_rsqrt", normal(1.0)>},
      %p_tanh: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_tanh", normal(1.0)>},
      %p_erf: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_erf", normal(1.0)>},
      %p_cos: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_cos", normal(1.0)>},
      %p_sin: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_sin", normal(1.0)>},
      %p_stop_gradient: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_stop_gradient", normal(1.0)>},
      %p_relu: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_relu", normal(1.0)>},
      %p_sigmoid: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_sigmoid", normal(1.0)>},
      %p_silu: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_silu", normal(1.0)>},
      %p_gelu: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_gelu", normal(1.0)>},
      %p_gelu_tanh: tensor<4x6xf32> {shardc.role = #shardc.parameter<"p_gelu_tanh", normal(1.0)>},
      %a_add: tensor<4x6xf32> {shardc.role = #shardc.parameter<"a_add", normal(1.0)>},
      %b_add: tensor<4x6xf32> {shardc.role = #shardc.parameter<"b_add", normal(1.0)>},
      %a_sub: tensor<4x6xf32> {shardc.role = #shardc.parameter<"a_sub", normal(1.0)>},
      %b_sub: tensor<4x6xf32> {shardc.role = #shardc.parameter<"b_sub", normal(1.0)>},
      %a_mul: tensor<4x6xf32> {shardc.role = #shardc.parameter<"a_mul", normal(1.0)>},
      %b_mul: tensor<4x6xf32> {shardc.role = #shardc.parameter<"b_mul", normal(1.0)>},
      %a_div: tensor<4x6xf32> {shardc.role = #shardc.parameter<"a_div", normal(1.0)>},
      %b_div: tensor<4x6xf32> {shardc.role = #shardc.parameter<"b_div", normal(1.0)>},
      %a_max: tensor<4x6xf32> {shardc.role = #shardc.parameter<"a_max", normal(1.0)>},
      %b_max: tensor<4x6xf32> {shardc.role = #shardc.parameter<"b_max", normal(1.0)>},
      %a_min: tensor<4x6xf32> {shardc.role = #shardc.parameter<"a_min", normal(1.0)>},
      %b_min: tensor<4x6xf32> {shardc.role = #shardc.parameter<"b_min", normal(1.0)>},
      %s_a: tensor<4x6xf32> {shardc.role = #shardc.parameter<"s_a", normal(1.0)>},
      %s_b: tensor<4x6xf32> {shardc.role = #shardc.parameter<"s_b", normal(1.0)>},
      %d_a: tensor<4x5xf32> {shardc.role = #shardc.parameter<"d_a", normal(1.0)>},
      %d_b: tensor<6x5xf32> {shardc.role = #shardc.parameter<"d_b", normal(1.0)>},
      %g_a: tensor<2x2x5xf32> {shardc.role = #shardc.parameter<"g_a", normal(1.0)>},
      %g_b: tensor<2x5x6xf32> {shardc.role = #shardc.parameter<"g_b", normal(1.0)>},
      %t_a: tensor<6x4xf32> {shardc.role = #shardc.parameter<"t_a", normal(1.0)>},
      %c_a: tensor<6xf32> {shardc.role = #shardc.parameter<"c_a", normal(1.0)>},
      %m_a: tensor<4x6x3xf32> {shardc.role = #shardc.parameter<"m_a", normal(1.0)>},
      %r_a: tensor<4x3x6xf32> {shardc.role = #shardc.parameter<"r_a", normal(1.0)>},
      %l_w: tensor<6x6xf32> {shardc.role = #shardc.parameter<"l_w", normal(1.0)>},
      %l_b: tensor<6xf32> {shardc.role = #shardc.parameter<"l_b", normal(1.0)>},
      %n_a: tensor<4x6xf32> {shardc.role = #shardc.parameter<"n_a", normal(1.0)>},
      %n_s: tensor<6xf32> {shardc.role = #shardc.parameter<"n_s", normal(1.0)>},
      %n_b: tensor<6xf32> {shardc.role = #shardc.parameter<"n_b", normal(1.0)>},
      %e_a: tensor<4x6xf32> {shardc.role = #shardc.parameter<"e_a", normal(1.0)>},
      %q_a: tensor<4x6xf32> {shardc.role = #shardc.parameter<"q_a", normal(1.0)>},
      %u_a: tensor<4x6xf32> {shardc.role = #shardc.parameter<"u_a", normal(1.0)>}) -> tensor<f32> {
    %v_neg = shardc.neg %p_neg : tensor<4x6xf32>
    %v_neg_x = shardc.mul %v_neg, %x : tensor<4x6xf32>
    %v_neg_term = shardc.reduce sum %v_neg_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_abs = shardc.abs %p_abs : tensor<4x6xf32>
    %v_abs_x = shardc.mul %v_abs, %x : tensor<4x6xf32>
    %v_abs_term = shardc.reduce sum %v_abs_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_sign = shardc.sign %p_sign : tensor<4x6xf32>
    %w_sign = shardc.mul %v_sign, %p_sign : tensor<4x6xf32>
    %v_sign_x = shardc.mul %w_sign, %x : tensor<4x6xf32>
    %v_sign_term = shardc.reduce sum %v_sign_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_exp = shardc.exp %p_exp : tensor<4x6xf32>
    %v_exp_x = shardc.mul %v_exp, %x : tensor<4x6xf32>
    %v_exp_term = shardc.reduce sum %v_exp_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_expm1 = shardc.expm1 %p_expm1 : tensor<4x6xf32>
    %v_expm1_x = shardc.mul %v_expm1, %x : tensor<4x6xf32>
    %v_expm1_term = shardc.reduce sum %v_expm1_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_log = shardc.log %p_log : tensor<4x6xf32>
    %v_log_x = shardc.mul %v_log, %x : tensor<4x6xf32>
    %v_log_term = shardc.reduce sum %v_log_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_log1p = shardc.log1p %p_log1p : tensor<4x6xf32>
    %v_log1p_x = shardc.mul %v_log1p, %x : tensor<4x6xf32>
    %v_log1p_term = shardc.reduce sum %v_log1p_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_sqrt = shardc.sqrt %p_sqrt : tensor<4x6xf32>
    %v_sqrt_x = shardc.mul %v_sqrt, %x : tensor<4x6xf32>
    %v_sqrt_term = shardc.reduce sum %v_sqrt_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_rsqrt = shardc.rsqrt %p_rsqrt : tensor<4x6xf32>
    %v_rsqrt_x = shardc.mul %v_rsqrt, %x : tensor<4x6xf32>
    %v_rsqrt_term = shardc.reduce sum %v_rsqrt_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_tanh = shardc.tanh %p_tanh : tensor<4x6xf32>
    %v_tanh_x = shardc.mul %v_tanh, %x : tensor<4x6xf32>
    %v_tanh_term = shardc.reduce sum %v_tanh_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_erf = shardc.erf %p_erf : tensor<4x6xf32>
    %v_erf_x = shardc.mul %v_erf, %x : tensor<4x6xf32>
    %v_erf_term = shardc.reduce sum %v_erf_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_cos = shardc.cos %p_cos : tensor<4x6xf32>
    %v_cos_x = shardc.mul %v_cos, %x : tensor<4x6xf32>
    %v_cos_term = shardc.reduce sum %v_cos_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_sin = shardc.sin %p_sin : tensor<4x6xf32>
    %v_sin_x = shardc.mul %v_sin, %x : tensor<4x6xf32>
    %v_sin_term = shardc.reduce sum %v_sin_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_stop_gradient = shardc.stop_gradient %p_stop_gradient : tensor<4x6xf32>
    %w_stop_gradient = shardc.mul %v_stop_gradient, %p_stop_gradient : tensor<4x6xf32>
    %v_stop_gradient_x = shardc.mul %w_stop_gradient, %x : tensor<4x6xf32>
    %v_stop_gradient_term = shardc.reduce sum %v_stop_gradient_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_relu = shardc.relu %p_relu : tensor<4x6xf32>
    %v_relu_x = shardc.mul %v_relu, %x : tensor<4x6xf32>
    %v_relu_term = shardc.reduce sum %v_relu_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_sigmoid = shardc.sigmoid %p_sigmoid : tensor<4x6xf32>
    %v_sigmoid_x = shardc.mul %v_sigmoid, %x : tensor<4x6xf32>
    %v_sigmoid_term = shardc.reduce sum %v_sigmoid_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_silu = shardc.silu %p_silu : tensor<4x6xf32>
    %v_silu_x = shardc.mul %v_silu, %x : tensor<4x6xf32>
    %v_silu_term = shardc.reduce sum %v_silu_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_gelu = shardc.gelu %p_gelu : tensor<4x6xf32>
    %v_gelu_x = shardc.mul %v_gelu, %x : tensor<4x6xf32>
    %v_gelu_term = shardc.reduce sum %v_gelu_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_gelu_tanh = shardc.gelu tanh %p_gelu_tanh : tensor<4x6xf32>
    %v_gelu_tanh_x = shardc.mul %v_gelu_tanh, %x : tensor<4x6xf32>
    %v_gelu_tanh_term = shardc.reduce sum %v_gelu_tanh_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_add = shardc.add %a_add, %b_add : tensor<4x6xf32>
    %v_add_x = shardc.mul %v_add, %x : tensor<4x6xf32>
    %v_add_term = shardc.reduce sum %v_add_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_sub = shardc.sub %a_sub, %b_sub : tensor<4x6xf32>
    %v_sub_x = shardc.mul %v_sub, %x : tensor<4x6xf32>
    %v_sub_term = shardc.reduce sum %v_sub_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_mul = shardc.mul %a_mul, %b_mul : tensor<4x6xf32>
    %v_mul_x = shardc.mul %v_mul, %x : tensor<4x6xf32>
    %v_mul_term = shardc.reduce sum %v_mul_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_div = shardc.div %a_div, %b_div : tensor<4x6xf32>
    %v_div_x = shardc.mul %v_div, %x : tensor<4x6xf32>
    %v_div_term = shardc.reduce sum %v_div_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_max = shardc.max %a_max, %b_max : tensor<4x6xf32>
    %v_max_x = shardc.mul %v_max, %x : tensor<4x6xf32>
    %v_max_term = shardc.reduce sum %v_max_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %v_min = shardc.min %a_min, %b_min : tensor<4x6xf32>
    %v_min_x = shardc.mul %v_min, %x : tensor<4x6xf32>
    %v_min_term = shardc.reduce sum %v_min_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %s_p = shardc.compare gt %s_a, %s_b : tensor<4x6xf32> -> tensor<4x6xi1>
    %s_v = shardc.select %s_p, %s_a, %s_b : tensor<4x6xi1>, tensor<4x6xf32>
    %s_v_x = shardc.mul %s_v, %x : tensor<4x6xf32>
    %s_v_term = shardc.reduce sum %s_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %d_v = shardc.dot_general %d_a, %d_b contracting = [1] x [1] : tensor<4x5xf32>, tensor<6x5xf32> -> tensor<4x6xf32>
    %d_v_x = shardc.mul %d_v, %x : tensor<4x6xf32>
    %d_v_term = shardc.reduce sum %d_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %g_d = shardc.dot_general %g_a, %g_b batching = [0] x [0] contracting = [2] x [1] : tensor<2x2x5xf32>, tensor<2x5x6xf32> -> tensor<2x2x6xf32>
    %g_v = shardc.reshape %g_d : tensor<2x2x6xf32> -> tensor<4x6xf32>
    %g_v_x = shardc.mul %g_v, %x : tensor<4x6xf32>
    %g_v_term = shardc.reduce sum %g_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %t_v = shardc.transpose %t_a permutation = [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
    %t_v_x = shardc.mul %t_v, %x : tensor<4x6xf32>
    %t_v_term = shardc.reduce sum %t_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %c_v = shardc.broadcast %c_a dims = [1] : tensor<6xf32> -> tensor<4x6xf32>
    %c_v_x = shardc.mul %c_v, %x : tensor<4x6xf32>
    %c_v_term = shardc.reduce sum %c_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %m_v = shardc.reduce max %m_a dims = [2] : tensor<4x6x3xf32> -> tensor<4x6xf32>
    %m_v_x = shardc.mul %m_v, %x : tensor<4x6xf32>
    %m_v_term = shardc.reduce sum %m_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %r_v = shardc.reduce sum %r_a dims = [1] : tensor<4x3x6xf32> -> tensor<4x6xf32>
    %r_v_x = shardc.mul %r_v, %x : tensor<4x6xf32>
    %r_v_term = shardc.reduce sum %r_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %l_v = shardc.linear %x, %l_w, %l_b : tensor<4x6xf32>, tensor<6x6xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %l_x = shardc.mul %l_v, %x : tensor<4x6xf32>
    %l_term = shardc.reduce sum %l_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %n_v = shardc.layer_norm %n_a, %n_s, %n_b epsilon = 1.0e-6 : tensor<4x6xf32>, tensor<6xf32>
    %n_v_x = shardc.mul %n_v, %x : tensor<4x6xf32>
    %n_v_term = shardc.reduce sum %n_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %e_term = shardc.softmax_cross_entropy %e_a, %y : tensor<4x6xf32>, tensor<4xi32> -> tensor<f32>
    %q_term = shardc.mse %q_a, %x : tensor<4x6xf32> -> tensor<f32>
    %u_t = shardc.tanh %u_a : tensor<4x6xf32>
    %u_v = shardc.mul %u_t, %u_a : tensor<4x6xf32>
    %u_v_x = shardc.mul %u_v, %x : tensor<4x6xf32>
    %u_v_term = shardc.reduce sum %u_v_x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %sum0 = shardc.add %v_neg_term, %v_abs_term : tensor<f32>
    %sum1 = shardc.add %sum0, %v_sign_term : tensor<f32>
    %sum2 = shardc.add %sum1, %v_exp_term : tensor<f32>
    %sum3 = shardc.add %sum2, %v_expm1_term : tensor<f32>
    %sum4 = shardc.add %sum3, %v_log_term : tensor<f32>
    %sum5 = shardc.add %sum4, %v_log1p_term : tensor<f32>
    %sum6 = shardc.add %sum5, %v_sqrt_term : tensor<f32>
    %sum7 = shardc.add %sum6, %v_rsqrt_term : tensor<f32>
    %sum8 = shardc.add %sum7, %v_tanh_term : tensor<f32>
    %sum9 = shardc.add %sum8, %v_erf_term : tensor<f32>
    %sum10 = shardc.add %sum9, %v_cos_term : tensor<f32>
    %sum11 = shardc.add %sum10, %v_sin_term : tensor<f32>
    %sum12 = shardc.add %sum11, %v_stop_gradient_term : tensor<f32>
    %sum13 = shardc.add %sum12, %v_relu_term : tensor<f32>
    %sum14 = shardc.add %sum13, %v_sigmoid_term : tensor<f32>
    %sum15 = shardc.add %sum14, %v_silu_term : tensor<f32>
    %sum16 = shardc.add %sum15, %v_gelu_term : tensor<f32>
    %sum17 = shardc.add %sum16, %v_gelu_tanh_term : tensor<f32>
    %sum18 = shardc.add %sum17, %v_add_term : tensor<f32>
    %sum19 = shardc.add %sum18, %v_sub_term : tensor<f32>
    %sum20 = shardc.add %sum19, %v_mul_term : tensor<f32>
    %sum21 = shardc.add %sum20, %v_div_term : tensor<f32>
    %sum22 = shardc.add %sum21, %v_max_term : tensor<f32>
    %sum23 = shardc.add %sum22, %v_min_term : tensor<f32>
    %sum24 = shardc.add %sum23, %s_v_term : tensor<f32>
    %sum25 = shardc.add %sum24, %d_v_term : tensor<f32>
    %sum26 = shardc.add %sum25, %g_v_term : tensor<f32>
    %sum27 = shardc.add %sum26, %t_v_term : tensor<f32>
    %sum28 = shardc.add %sum27, %c_v_term : tensor<f32>
    %sum29 = shardc.add %sum28, %m_v_term : tensor<f32>
    %sum30 = shardc.add %sum29, %r_v_term : tensor<f32>
    %sum31 = shardc.add %sum30, %l_term : tensor<f32>
    %sum32 = shardc.add %sum31, %n_v_term : tensor<f32>
    %sum33 = shardc.add %sum32, %e_term : tensor<f32>
    %sum34 = shardc.add %sum33, %q_term : tensor<f32>
    %loss = shardc.add %sum34, %u_v_term : tensor<f32>
    return %loss : tensor<f32>
  }
}
